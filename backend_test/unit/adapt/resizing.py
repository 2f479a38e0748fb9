# SPDX-License-Identifier: Apache-2.0
"""Resize as ONNX's documentation has it, in exact fractions: the reference evaluator rounds places to the wrong side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

HALF = Fraction(1, 2)


def resized(
    x: np.ndarray,
    *,
    scales: np.ndarray | None = None,
    sizes: np.ndarray | None = None,
    roi: np.ndarray | None = None,
    axes: Sequence[int] | None = None,
    policy: str = "stretch",
    extrapolation: float = 0.0,
    **how: Any,
) -> np.ndarray:
    """The result before it is rounded to the type of x."""
    places = [a % x.ndim for a in axes] if axes is not None else list(range(x.ndim))
    factors = [Fraction(float(s)) for s in scales] if scales is not None else []
    if sizes is not None:
        factors = [Fraction(int(n), x.shape[a]) for n, a in zip(sizes, places, strict=True)]
        if policy != "stretch":
            factors = [min(factors) if policy == "not_larger" else max(factors)] * len(factors)
    result = x.astype(np.float64)
    outside = np.zeros((), bool)
    for i, (axis, factor) in enumerate(zip(places, factors, strict=True)):
        length = x.shape[axis]
        new = math.floor(factor * length + (HALF if policy != "stretch" and sizes is not None else 0))
        crop = None if roi is None else (Fraction(float(roi[i])), Fraction(float(roi[i + len(places)])))
        if factor == 1 and new == length and crop in (None, (0, 1)):
            result = result.copy()
            continue
        origins = [_origin(y, length, new, factor, crop, how["coordinates"]) for y in range(new)]
        weights = np.array([_weights(o, length, factor, **how) for o in origins], np.float64).reshape(new, length)
        result = np.moveaxis(np.tensordot(weights, result, (1, axis)), 0, axis)
        if crop:
            beyond = np.array([o < 0 or o > length - 1 for o in origins], bool)
            outside = outside | beyond.reshape(-1, *[1] * (x.ndim - axis - 1))
    return np.where(outside, extrapolation, result)


def _origin(y: int, length: int, new: int, factor: Fraction, crop: Any, coordinates: str) -> Fraction:
    width = factor * length
    if coordinates == "align_corners":
        return Fraction(0) if new == 1 else Fraction(y * (length - 1), new - 1)
    if coordinates == "asymmetric":
        return y / factor
    if coordinates == "tf_crop_and_resize":
        begin, end = crop
        spread = HALF if new == 1 else Fraction(y, new - 1)
        return (begin + spread * (end - begin)) * (length - 1)
    middle = (y + HALF) / factor - HALF
    if coordinates == "half_pixel_symmetric":
        return Fraction(length, 2) * (1 - new / width) + middle
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return Fraction(0)
    return middle


def _weights(
    origin: Fraction,
    length: int,
    factor: Fraction,
    *,
    coordinates: str,
    mode: str,
    rounding: str = "round_prefer_floor",
    antialias: int = 0,
    exclude: int = 0,
    a: float = -0.75,
) -> list[float]:
    row = [Fraction(0)] * length
    if mode == "nearest":
        round_it: dict[str, Callable[[Fraction], int]] = {
            "floor": math.floor,
            "ceil": math.ceil,
            "round_prefer_floor": lambda f: math.ceil(f - HALF),
            "round_prefer_ceil": lambda f: math.floor(f + HALF),
        }
        row[min(max(round_it[rounding](origin), 0), length - 1)] = Fraction(1)
        return [float(w) for w in row]
    stretch = min(factor, Fraction(1)) if antialias else Fraction(1)
    reach = 2 + math.ceil(2 / stretch)
    total = Fraction(0)
    for place in range(math.floor(origin) - reach, math.ceil(origin) + reach + 1):
        weight = _kernel(abs(place - origin) * stretch, mode, Fraction(a))
        if exclude and not 0 <= place < length:
            continue
        total += weight
        row[min(max(place, 0), length - 1)] += weight
    return [float(w / (total or 1)) if antialias or exclude else float(w) for w in row]


def _kernel(t: Fraction, mode: str, a: Fraction) -> Fraction:
    if mode == "linear":
        return max(1 - t, Fraction(0))
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else Fraction(0)
