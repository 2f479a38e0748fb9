# SPDX-License-Identifier: Apache-2.0
"""Rule: operators on elements whose kernels take no tensors without axes."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

REFUSED = ("Gelu",)


def scalars(site: Site) -> Iterator[ModelProto]:
    """Give the tensor an axis, and take it away again."""
    if not site.is_(*REFUSED) or site.rank(site.input(0)) != 0:
        return
    body = Body(site, site.opsets)
    result = body(site.op_type, body("Reshape", site.input(0), body.ints(1)), **site.attributes())
    yield body.finish(body("Reshape", result, body.ints()))
