# SPDX-License-Identifier: Apache-2.0
"""Rule: LRN over an even number of channels, of 5 of a number known only at run time, or of 16 bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_LAST = int(np.iinfo(np.int64).max)


def lrn(site: Site) -> Iterator[ModelProto]:
    """Add the squares of the neighbouring channels: one more behind than before. Source: LRN's documentation.

    Squares of 16 bits are added in float32. ONNX Runtime's own kernel has float32 alone, and keeps a NaN of one channel in its sums for the
    later ones. Each neighbour brings its share of the bias: where a sum of what is not folded gets a float64 constant, OpenVINO 2026.4
    compiles without an end.
    """
    x, given, rank = site.input(0), site.elem_type(site.input(0)), site.rank(site.input(0))
    size = site.attribute("size", 0)
    if not site.is_("LRN") or rank is None or rank < 2 or size < 1 or not given:
        return
    body = Body(site)
    kind = given
    if given in _HALVES:
        kind, x = TensorProto.FLOAT, body.cast(x, TensorProto.FLOAT)
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
    result = body("Div", x, power)
    yield body.finish(body.cast(result, given) if kind != given else result)
