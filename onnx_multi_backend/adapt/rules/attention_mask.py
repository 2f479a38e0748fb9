# SPDX-License-Identifier: Apache-2.0
"""Rule: Attention whose mask has one row for all queries."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.masks import MASK, one_row
from onnx_multi_backend.adapt.site import Body, Site


def attention_mask(site: Site) -> Iterator[ModelProto]:
    """Repeat the row for each query, so that the engine's own Attention stays."""
    if not site.is_("Attention") or not one_row(site):
        return
    body = Body(site, site.opsets)
    queries = body("Shape", site.input(0), start=-2, end=-1)  # the same axis in both ranks
    rows = body("Expand", site.input(MASK), body("Concat", queries, body.ints(1), axis=0))
    inputs = [rows if i == MASK else name for i, name in enumerate(site.node.input)]
    results = body("Attention", *inputs, outputs=len(site.node.output), **site.attributes())
    yield body.finish(*results)
