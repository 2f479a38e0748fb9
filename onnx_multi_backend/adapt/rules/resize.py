# SPDX-License-Identifier: Apache-2.0
"""Rule: Resize, one axis after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import KERNEL
from onnx_multi_backend.adapt.operators.resizing import given, resized_axes
from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site
from onnx_multi_backend.models.tensors import numpy_dtype

_T = TensorProto
_FLOATS = (_T.FLOAT, _T.FLOAT16, _T.BFLOAT16, _T.DOUBLE)
#: The integers that float32 holds.
_SMALL_INTEGERS = (_T.INT8, _T.UINT8, _T.INT16, _T.UINT16)
_REACH = {"linear": 1, "cubic": 2}


def resize(site: Site) -> Iterator[ModelProto]:
    """Gather the neighbours of each new place along one axis, and add them up by the weights that ONNX gives them.

    Only neighbours are read, so that a NaN stays where it is; there is no more memory than the image takes times the
    neighbours along one axis. With `sizes`, a place is multiplied and divided by whole numbers, which is exact where the
    place is; half a place would otherwise be rounded to either side.

    With ``tf_crop_and_resize``, `sizes` are needed: whether `roi` goes into the new size by `scales`, ONNX's
    documentation and its shape inference disagree about.

    Source: Resize's documentation, and for what it leaves open ``onnx/reference/ops/op_resize.py``: antialiasing, weights at the
    edge, rounding to integers. The corners are those of the new length, which is whole: before 1.24, ONNX's evaluator took ``scale * size``.
    """
    if not site.is_("Resize") or site.opset < 11 or KERNEL in site.node.name or not _can(site):
        return
    x, rank = site.input(0), site.rank(site.input(0))
    axes = resized_axes(site)
    if axes is None or rank is None:
        return
    resizing = _Resizing(site, Body(site), axes)
    body, kind, mode = resizing.body, site.elem_type(x), site.attribute("mode", "nearest")
    if any(
        map(resizing.leaves_nothing, range(len(axes)))
    ):  # whose other axes need not be gathered; of nothing, engines may not
        yield body.finish(body.zeros(resizing.shape(), kind))
        return
    wide = kind if kind == _T.DOUBLE or mode == "nearest" else _T.FLOAT
    result = x if wide == kind else body.cast(x, wide)
    outside = ""
    for i, axis in enumerate(axes):
        if resizing.keeps(i):
            continue
        along = resizing.along(i)
        if mode == "nearest":
            result = body("Gather", result, along.nearest, axis=axis)
        else:
            trailing = body.ints(*range(2, rank - axis + 1)) if axis < rank - 1 else ""
            weights = body.cast(along.weights, wide) if wide != _T.FLOAT else along.weights
            weights = body("Unsqueeze", weights, trailing) if trailing else weights
            taken = body("Mul", body("Gather", result, along.neighbours, axis=axis), weights)
            result = body("ReduceSum", taken, body.ints(axis + 1), keepdims=0)
        if along.outside:
            later = rank - axis - 1
            here = body("Unsqueeze", along.outside, body.ints(*range(1, later + 1))) if later else along.outside
            outside = body("Or", outside, here) if outside else here
    if outside:
        value = body.constant(_saturated(site.attribute("extrapolation_value", 0.0), wide), wide)
        result = body("Where", outside, value, result)
    yield body.finish(_narrowed(body, result, wide, kind))


def _can(site: Site) -> bool:
    kind, mode = site.elem_type(site.input(0)), site.attribute("mode", "nearest")
    crops = site.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    if given(site, 2) == given(site, 3) or (crops and not (given(site, 1) and given(site, 3))):
        return False
    if any(given(site, i) and site.rank(site.input(i)) not in (1, None) for i in (1, 2, 3)):  # not valid
        return False
    scales = site.constant(site.input(2)) if given(site, 2) else None
    sizes = site.constant(site.input(3)) if given(site, 3) else None
    if (scales is not None and not (scales > 0).all()) or (sizes is not None and (sizes < 0).any()):  # not valid
        return False
    if mode == "nearest":
        return not site.attribute("antialias", 0) and (not crops or kind in _FLOATS or kind in INTEGER_BITS)
    return mode in _REACH and (kind in _FLOATS or kind in _SMALL_INTEGERS)


def _saturated(value: float, kind: int) -> float | int:
    """A number as a value of a type: rounded and, like the results, brought within the type's range."""
    if kind not in INTEGER_BITS:
        return value
    info = np.iinfo(numpy_dtype(kind))
    if not np.isfinite(value):
        return 0 if np.isnan(value) else int(info.max if value > 0 else info.min)
    return min(max(round(value), int(info.min)), int(info.max))


def _narrowed(body: Body, value: str, wide: int, kind: int) -> str:
    if wide == kind:
        return value
    if kind in INTEGER_BITS:
        info = np.iinfo(numpy_dtype(kind))
        lowest, highest = (body.constant(float(bound), wide) for bound in (info.min, info.max))
        value = body("Clip", body("Round", value), lowest, highest)
    return body.cast(value, kind)


class _Along(NamedTuple):
    """What each place of an axis is made of: values with an element, or a row, for each.

    Attributes
    ----------
    nearest : str
        Indices.
    neighbours, weights : str
        A row of indices, and of weights.
    outside : str
        Which places lie outside the image and get `extrapolation_value`; empty where none can.
    """

    nearest: str
    neighbours: str
    weights: str
    outside: str


class _Resizing:
    """One Resize: the lengths and factors of its axes, and the places along each."""

    def __init__(self, site: Site, body: Body, axes: list[int]) -> None:
        self.body = body
        self._site = site
        self._axes = axes
        self._rank = site.rank(site.input(0)) or 0
        self._mode = site.attribute("mode", "nearest")
        self._how = site.attribute("coordinate_transformation_mode", "half_pixel")
        self._half, self._one, self._zero = (body.constant(number, _T.FLOAT) for number in (0.5, 1, 0))
        shape = body("Gather", body("Shape", site.input(0)), body.ints(*axes), axis=0)
        self._lengths = body.cast(shape, _T.FLOAT)
        if given(site, 2):
            self._over, self._under = site.input(2), self._one
            self._new = body("Floor", body("Mul", self._over, self._lengths))
            return
        self._over = self._new = body.cast(site.input(3), _T.FLOAT)
        self._under = self._lengths
        policy = site.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = body("Div", self._over, self._lengths)
            chosen = body("ArgMin" if policy == "not_larger" else "ArgMax", factors, axis=0, keepdims=1)
            self._over, self._under = (body("Gather", v, chosen, axis=0) for v in (self._over, self._lengths))
            self._over, self._under = (body("Expand", v, body.ints(len(axes))) for v in (self._over, self._under))
            widths = self._divided(body("Mul", self._over, self._lengths), self._under)
            self._new = body("Floor", body("Add", widths, self._half))

    def keeps(self, i: int) -> bool:
        """Whether an axis is known to stay as it is."""
        if self._how == "tf_crop_and_resize":
            return False
        if given(self._site, 2):
            scales = self._site.constant(self._site.input(2))
            return scales is not None and scales.shape == (len(self._axes),) and bool(scales[i] == 1)
        if self._site.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
            return False
        sizes, shape = self._site.constant(self._site.input(3)), self._site.shape(self._site.input(0))
        if sizes is None or shape is None or sizes.shape != (len(self._axes),):
            return False
        return bool(shape[self._axes[i]] == sizes[i])

    def leaves_nothing(self, i: int) -> bool:
        """Whether an axis is known to have no places."""
        place = 2 if given(self._site, 2) else 3
        factors, shape = self._site.constant(self._site.input(place)), self._site.shape(self._site.input(0))
        if factors is None or factors.shape != (len(self._axes),) or shape is None:
            return False
        if place == 3:
            return self._site.attribute("keep_aspect_ratio_policy", "stretch") == "stretch" and not factors[i]
        size = shape[self._axes[i]]
        return size is not None and np.floor(factors[i] * np.float32(size)) == 0

    def shape(self) -> str:
        """The shape of the result."""
        new, old = self.body.cast(self._new, _T.INT64), self.body("Shape", self._site.input(0))
        sources = [(new, self._axes.index(axis)) if axis in self._axes else (old, axis) for axis in range(self._rank)]
        return str(self.body("Concat", *(self.body("Gather", v, self.body.ints(i)) for v, i in sources), axis=0))

    def along(self, i: int) -> _Along:
        """The places along an axis."""
        body = self.body
        length, new, over = (self._of(v, i) for v in (self._lengths, self._new, self._over))
        under = self._of(self._under, i) if self._under != self._one else self._one
        last = body("Sub", length, self._one)
        # Of an axis of no length, nothing can be made.
        count = body("Mul", new, body("Min", length, self._one))
        places = body("Range", self._zero, count, self._one)
        begin, end = self._roi(i)
        x = self._origins(places, length, new, over, under, begin, end)
        same = body("And", body("Equal", over, under), body("Equal", new, length))
        outside = ""
        if begin:
            whole = body("And", body("Equal", begin, self._zero), body("Equal", end, self._one))
            same = body("And", same, whole)
            outside = body("Or", body("Less", x, self._zero), body("Less", last, x))
            outside = body("And", outside, body("Not", same))
        if self._mode == "nearest":
            nearest = body("Where", same, places, self._inside(self._nearest(x), last))
            return _Along(body.cast(nearest, _T.INT64), "", "", outside)
        neighbours, weights = self._weighted(x, last, body("Div", over, under), places, same)
        return _Along("", neighbours, weights, outside)

    def _of(self, values: str, i: int) -> str:
        return str(self.body("Gather", values, self.body.constant(i, _T.INT64), axis=0))

    def _roi(self, i: int) -> tuple[str, str]:
        """Where an axis is cropped; empty names where it is not."""
        if self._how != "tf_crop_and_resize":
            return "", ""
        roi = self._site.input(1)
        if self._site.elem_type(roi) != _T.FLOAT:
            roi = self.body.cast(roi, _T.FLOAT)
        return self._of(roi, i), self._of(roi, len(self._axes) + i)

    def _origins(self, places: str, length: str, new: str, over: str, under: str, begin: str, end: str) -> str:
        """Where each place comes from."""
        body = self.body
        last = body("Sub", length, self._one)
        single = body("Equal", new, self._one)
        steps = body("Where", single, self._one, body("Sub", new, self._one))
        if self._how == "align_corners":
            return self._divided(body("Mul", places, last), steps)
        if self._how == "asymmetric":
            return self._divided(body("Mul", places, under), over)
        if self._how == "tf_crop_and_resize":
            span = body("Mul", body("Sub", end, begin), last)
            spread = self._divided(body("Mul", places, span), steps)
            spread = body("Where", single, body("Mul", span, self._half), spread)
            return str(body("Add", spread, body("Mul", begin, last)))
        doubled = body("Add", body("Add", places, places), self._one)
        if self._how == "half_pixel_symmetric":
            from_middle = self._divided(body("Mul", body("Sub", doubled, new), under), over)
            return str(body("Mul", body("Add", from_middle, last), self._half))
        middles = self._divided(body("Mul", body("Mul", doubled, self._half), under), over)
        if self._how == "tf_half_pixel_for_nn":
            return middles
        x = body("Sub", middles, self._half)
        if self._how == "pytorch_half_pixel":
            x = body("Where", body("Less", self._one, new), x, self._zero)
        return str(x)

    def _divided(self, a: str, b: str) -> str:
        """Exact where the quotient is a number of halves: OpenVINO multiplies by the reciprocal."""
        body = self.body
        quotient = body("Div", a, b)
        halves = body("Mul", body("Round", body("Add", quotient, quotient)), self._half)
        return str(body("Where", body("Equal", body("Mul", halves, b), a), halves, quotient))

    def _nearest(self, x: str) -> str:
        body, how = self.body, self._site.attribute("nearest_mode", "round_prefer_floor")
        if how == "round_prefer_floor":
            return str(body("Ceil", body("Sub", x, self._half)))
        if how == "round_prefer_ceil":
            return str(body("Floor", body("Add", x, self._half)))
        return str(body("Floor" if how == "floor" else "Ceil", x))

    def _inside(self, index: str, last: str) -> str:
        return self.body.within(index, self._zero, last)

    def _weighted(self, x: str, last: str, factor: str, places: str, same: str) -> tuple[str, str]:
        """The neighbours of each place and their weights: the kernel's values, stretched against aliasing."""
        body, reach = self.body, _REACH[self._mode]
        antialias = self._site.attribute("antialias", 0)
        shrinks = body("Min", factor, self._one) if antialias else self._one
        far = body.constant(-reach, _T.FLOAT)
        first = body("Add", body("Floor", body("Div", far, shrinks)), self._one)
        steps = body("Range", first, body("Sub", body.constant(2, _T.FLOAT), first), self._one)
        column = body.ints(1)
        before = body("Sub", body("Ceil", x), self._one)  # a whole x has its place to the right
        taps = body("Add", body("Unsqueeze", before, column), steps)
        away = body("Abs", body("Sub", taps, body("Unsqueeze", x, column)))
        weights = self._kernel(body("Mul", away, shrinks) if antialias else away)
        if self._site.attribute("exclude_outside", 0):
            excluded = body("Or", body("Less", taps, self._zero), body("Less", last, taps))
            weights = body("Where", excluded, self._zero, weights)
        if antialias or self._site.attribute("exclude_outside", 0):
            total = body("ReduceSum", weights, column, keepdims=1)
            total = body("Where", body("Equal", total, self._zero), self._one, total)
            weights = body("Div", weights, total)
        # What stays as it is is taken as often as there are neighbours: a power of two.
        neighbours = body("Where", same, body("Unsqueeze", places, column), self._inside(taps, last))
        weights = body("Where", same, body.constant(0.5 / reach, _T.FLOAT), weights)
        return body.cast(neighbours, _T.INT64), weights

    def _kernel(self, away: str) -> str:
        """Source of the cubic one: Keys, "Cubic convolution interpolation for digital image processing", equation 4."""
        body = self.body
        if self._mode == "linear":
            return str(body("Max", body("Sub", self._one, away), self._zero))
        a = self._site.attribute("cubic_coeff_a", -0.75)

        def horner(*coefficients: float) -> str:
            first, *rest = (body.constant(c, _T.FLOAT) for c in coefficients)
            value = first
            for c in rest:
                value = body("Add", body("Mul", value, away), c)
            return value

        near, far = horner(a + 2, -(a + 3), 0, 1), horner(a, -5 * a, 8 * a, -4 * a)
        beyond = body("Where", body("Less", away, body.constant(2, _T.FLOAT)), far, self._zero)
        return str(body("Where", body("LessOrEqual", away, self._one), near, beyond))
