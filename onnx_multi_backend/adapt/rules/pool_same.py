# SPDX-License-Identifier: Apache-2.0
"""Rule: pooling in which auto_pad says how many windows there are, and ceil_mode says nothing."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.pools import POOLS, SAME
from onnx_multi_backend.adapt.site import Body, Site


def pool_same(site: Site) -> Iterator[ModelProto]:
    """Leave ceil_mode out: there are as many windows as strides begin in the image. Source: MaxPool's documentation."""
    if not site.is_(*POOLS) or not site.attribute("ceil_mode", 0) or site.attribute("auto_pad") not in SAME:
        return
    body = Body(site, site.opsets)
    results = body(site.op_type, site.input(0), outputs=len(site.node.output), **site.attributes("ceil_mode"))
    yield body.finish(*(result if wanted else "" for result, wanted in zip(results, site.node.output, strict=True)))
