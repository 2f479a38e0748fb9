# SPDX-License-Identifier: Apache-2.0
"""Rule: LRN over an even number of channels, or of 5 of a number known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

_LAST = int(np.iinfo(np.int64).max)


def lrn(site: Site) -> Iterator[ModelProto]:
    """Add the squares of the neighbouring channels: one more behind than before. Source: LRN's documentation.

    Each neighbour brings its share of the bias: where a sum of what is not folded gets a float64 constant, OpenVINO 2026.4 compiles without an end.
    """
    x, kind, rank = site.input(0), site.elem_type(site.input(0)), site.rank(site.input(0))
    size = site.attribute("size", 0)
    if not site.is_("LRN") or rank is None or rank < 2 or size < 1 or not kind:
        return
    body = Body(site)
    before = (size - 1) // 2
    pads = np.zeros((2, rank), np.int64)
    pads[:, 1] = before, size - 1 - before
    share = body.constant(site.attribute("bias", 1.0) / size, kind)
    factor = body.constant(site.attribute("alpha", 1e-4) / size, kind)
    squares = body("Add", body("Mul", body("Mul", x, x), factor), share)
    squares = body("Pad", squares, body.constant(pads.ravel()), share)
    channel = body.ints(1)
    total = ""
    for i in range(size):
        end = i - (size - 1)
        part = body("Slice", squares, body.ints(i), body.ints(end or _LAST), channel)
        total = body("Add", total, part) if total else part
    power = body("Pow", total, body.constant(site.attribute("beta", 0.75), kind))
    yield body.finish(body("Div", x, power))
