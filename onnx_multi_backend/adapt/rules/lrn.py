# SPDX-License-Identifier: Apache-2.0
"""Rule: LRN as a sum of neighbouring channels, each added by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import BODY_OPSET, Body, Site

#: Since these opsets two tensors of different shapes are added, bounds of Slice are inputs, and pads are.
_BROADCAST, _SLICE_INPUTS, _PAD_INPUTS = 7, 10, 11
_LAST = int(np.iinfo(np.int64).max)
#: Each is two nodes; no model has that many.
_MOST_NEIGHBOURS = 512
_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def lrn(site: Site) -> Iterator[ModelProto]:
    """Add the squares of the neighbouring channels: one more behind than before. Source: LRN's documentation.

    Each neighbour brings its share of the bias: where a sum of what is not folded gets a float64 constant, OpenVINO 2026.4 compiles without an
    end. Squares of 16 bits are added in float32: those of float16 overflow from 256 on.
    """
    x, given, rank = site.input(0), site.elem_type(site.input(0)), site.rank(site.input(0))
    size, shape = site.attribute("size", 0), site.shape(site.input(0))
    if not site.is_("LRN") or rank is None or rank < 2 or size < 1 or not given:
        return
    before, behind = (size - 1) // 2, size // 2
    if shape is not None and (channels := shape[1]):
        before, behind = min(before, channels - 1), min(behind, channels - 1)
    if before + behind > _MOST_NEIGHBOURS:
        return
    opset = site.target or site.opset
    opset = opset if opset >= _BROADCAST else BODY_OPSET
    body = Body(site, {"": opset})
    kind = TensorProto.FLOAT if given in _HALVES else given
    wide = body.cast(x, kind) if kind != given else x
    neighbour = site.attribute("bias", 1.0) / (before + 1 + behind)
    share = body.constant(neighbour, kind)
    factor = body.constant(site.attribute("alpha", 1e-4) / size, kind)
    squares = body("Add", body("Mul", body("Mul", wide, wide), factor), share)
    pads = np.zeros((2, rank), np.int64)
    pads[:, 1] = before, behind
    if opset < _PAD_INPUTS:
        squares = body("Pad", squares, pads=pads.ravel().tolist(), value=neighbour)
    else:
        squares = body("Pad", squares, body.constant(pads.ravel()), share)
    total = ""
    for i in range(before + 1 + behind):
        part = _channels(body, squares, i, i - (before + behind) or _LAST, opset)
        total = body("Add", total, part) if total else part
    power = body("Pow", total, body.constant(site.attribute("beta", 0.75), kind))
    result = body("Div", wide, power)
    yield body.finish(body.cast(result, given) if kind != given else result)


def _channels(body: Body, x: str, start: int, end: int, opset: int) -> str:
    """A Slice along the channels."""
    if opset < _SLICE_INPUTS:
        return str(body("Slice", x, axes=[1], starts=[start], ends=[end]))
    return str(body("Slice", x, body.ints(start), body.ints(end), body.ints(1)))
