# SPDX-License-Identifier: Apache-2.0
"""Rule: GridSample of lines and volumes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_FLOATS = (_T.FLOAT, _T.FLOAT16, _T.BFLOAT16, _T.DOUBLE)


def grid_sample(site: Site) -> Iterator[ModelProto]:
    """Gather the corners of the cell that a place lies in, and add them up by their weights.

    Source: GridSample's documentation, and for reflection ``onnx/reference/ops/op_grid_sample.py``.
    """
    x, grid = site.input(0), site.input(1)
    kind, shape = site.elem_type(x), site.shape(x)
    mode = {"bilinear": "linear"}.get(site.attribute("mode", "linear"), site.attribute("mode", "linear"))
    if not site.is_("GridSample") or shape is None or not 3 <= len(shape) <= 5 or 0 in shape:
        return
    if not (mode == "linear" and kind in _FLOATS) and not (
        mode == "nearest" and (kind in _FLOATS or kind in INTEGER_BITS or kind == _T.BOOL)
    ):
        return
    sampling = _Sampling(site, Body(site), len(shape) - 2)
    body, axes = sampling.body, len(shape) - 2
    wide = kind if mode == "nearest" or kind == _T.DOUBLE else _T.FLOAT
    image = x if wide == kind else body.cast(x, wide)
    channels_last = body("Transpose", image, perm=[0, *range(2, axes + 2), 1])
    places = sampling.places(grid)
    if mode == "nearest":
        result = sampling.taken(channels_last, sampling.padded(body("Round", places)), wide)
    else:
        result = ""
        places = sampling.padded(places)
        first = body("Floor", places)
        after = body("Sub", places, first)
        before = body("Sub", sampling.one, after)
        for corner in itertools.product((False, True), repeat=axes):
            steps = body.constant(np.array(corner, np.float32), sampling.kind)
            weights = body("Where", body.constant(np.array(corner)), after, before)
            weight = body("ReduceProd", weights, body.ints(-1), keepdims=1)
            weight = weight if sampling.kind == wide else body.cast(weight, wide)
            value = sampling.taken(channels_last, body("Add", first, steps), wide)
            part = body("Mul", value, weight)
            result = body("Add", result, part) if result else part
    result = body("Transpose", result, perm=[0, axes + 1, *range(1, axes + 1)])
    yield body.finish(result if wide == kind else body.cast(result, kind))


class _Sampling:
    """Places in an image: a vector for each, in the order of the image's axes."""

    def __init__(self, site: Site, body: Body, axes: int) -> None:
        self.body = body
        self.kind = _T.DOUBLE if site.elem_type(site.input(1)) == _T.DOUBLE else _T.FLOAT
        self.one, self._zero, self._half, self._two = (body.constant(n, self.kind) for n in (1, 0, 0.5, 2))
        self._aligned = site.attribute("align_corners", 0)
        self._padding = site.attribute("padding_mode", "zeros")
        self._axes = axes
        self._given = site.elem_type(site.input(1))
        sizes = body("Gather", body("Shape", site.input(0)), body.ints(*range(2, axes + 2)), axis=0)
        self._lengths = body.cast(sizes, self.kind)
        self._last = body("Sub", self._lengths, self.one)

    def places(self, grid: str) -> str:
        """From -1...1 to indices."""
        body = self.body
        grid = grid if self._given == self.kind else body.cast(grid, self.kind)
        turned = body("Gather", grid, body.ints(*reversed(range(self._axes))), axis=-1)
        along = body("Add", turned, self.one)
        if self._aligned:
            return str(body("Mul", body("Mul", along, self._half), self._last))
        return str(body("Mul", body("Sub", body("Mul", along, self._lengths), self.one), self._half))

    def padded(self, places: str) -> str:
        """Outside places moved inside, as far as `padding_mode` moves them."""
        body = self.body
        if self._padding == "border":
            return self._inside(places)
        if self._padding == "zeros":
            return places
        low = self._zero if self._aligned else body.constant(-0.5, self.kind)
        span = self._last if self._aligned else self._lengths
        some = body("Max", span, body.constant(np.finfo(np.float32).tiny, self.kind))  # one element: all is its border
        away = body("Abs", body("Sub", places, low))
        rest = body("Mod", away, body("Mul", some, self._two), fmod=1, name=GUARDED)
        back = body("Sub", body("Mul", span, self._two), rest)
        return str(body("Add", low, body("Where", body("Less", span, rest), back, rest)))

    def taken(self, image: str, indices: str, kind: int) -> str:
        """The elements at whole places."""
        body = self.body
        value = body("GatherND", image, body.cast(self._inside(indices), _T.INT64), batch_dims=1)
        if self._padding != "zeros":
            return str(value)
        within = body("And", body("LessOrEqual", self._zero, indices), body("LessOrEqual", indices, self._last))
        every = body("ReduceMin", body.cast(within, _T.INT32), body.ints(-1), keepdims=1)
        return str(body("Where", body.cast(every, _T.BOOL), value, body.constant(0, kind)))

    def _inside(self, places: str) -> str:
        return self.body.within(places, self._zero, self._last)
