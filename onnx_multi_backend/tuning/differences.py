# SPDX-License-Identifier: Apache-2.0
"""How far results are from those of a reference, and how far they may be."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx_multi_backend.errors import OptionError, OptionTypeError

#: What float32 results differ by at least, where engines add in other orders: by the largest element of the output.
FLOAT32_NOISE = 1e-4

#: A model that answers inputs changed in their last bit with larger differences is allowed so many times these, and no more than `_MOST`:
#: engines round in every layer, and that change is made in the first alone.
_TIMES, _MOST = 10.0, 0.1


@dataclass(frozen=True)
class Difference:
    """How far results are from the reference's, in the worst output of the worst example.

    Attributes
    ----------
    largest : float
        The largest absolute difference of two elements; infinite where one of them is NaN or infinite and the other is not.
    relative : float
        The same by the largest finite element of the reference's output.
    cosine : float
        The smallest cosine similarity of an output.
    noise : float
        The largest length of an output's difference, by the length of the reference's output.
    """

    largest: float = 0.0
    relative: float = 0.0
    cosine: float = 1.0
    noise: float = 0.0

    def worse(self, other: Difference) -> Difference:
        """The worse of two, figure by figure."""
        return Difference(
            max(self.largest, other.largest),
            max(self.relative, other.relative),
            min(self.cosine, other.cosine),
            max(self.noise, other.noise),
        )


@dataclass(frozen=True)
class Limits:
    """How far results may be from the reference's.

    Attributes
    ----------
    max_error : float, optional
        The most that `Difference.largest` may be.
    min_cosine : float, optional
        The least that `Difference.cosine` may be.
    noise : float
        The most that `Difference.relative` may be where neither is given.
    """

    max_error: float | None = None
    min_cosine: float | None = None
    noise: float = FLOAT32_NOISE

    def __post_init__(self) -> None:
        for name, value, high in (("max_error", self.max_error, math.inf), ("min_cosine", self.min_cosine, 1.0)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise OptionTypeError(f"{name} is a number or None; {value!r} was given.")
            low = 0.0 if name == "max_error" else -1.0
            if not low <= float(value) <= high or math.isinf(value):
                raise OptionError(
                    f"{name} is {'at least 0 and finite' if high == math.inf else 'from -1 to 1'}; {value} was given."
                )
            object.__setattr__(self, name, float(value))

    @property
    def given(self) -> bool:
        """Whether the user gave a limit, and with it leave to compute in less than float32."""
        return self.max_error is not None or self.min_cosine is not None

    def why_not(self, difference: Difference) -> str:
        """Why results are too far away; empty where they are not."""
        if self.max_error is not None and not difference.largest <= self.max_error:
            return f"the largest error is {difference.largest:.3g}, and {self.max_error:g} is allowed"
        if self.min_cosine is not None and not difference.cosine >= self.min_cosine:
            return f"the cosine is {difference.cosine:.6f}, and {self.min_cosine:g} is the least"
        if self.min_cosine is not None and self.min_cosine > 0 and not difference.noise <= _noise_with(self.min_cosine):
            return (
                f"the noise is {difference.noise:.2g} of an output, and {_noise_with(self.min_cosine):.2g} goes with a cosine of "
                f"{self.min_cosine:g}"
            )
        if not self.given and not difference.relative <= self.noise:
            return f"the largest error is {difference.relative:.2g} of the output's largest element, more than float32 noise ({self.noise:.1g})"
        return ""

    def __str__(self) -> str:
        parts = [] if self.max_error is None else [f"an error of at most {self.max_error:g}"]
        parts += [] if self.min_cosine is None else [f"a cosine of at least {self.min_cosine:g}"]
        return " and ".join(parts) or f"float32 noise ({self.noise:.1g} of an output's largest element)"


def _noise_with(cosine: float) -> float:
    """The noise that goes with a cosine where there is no other error, and half as much again: a result that is three times too small has a cosine of 1."""
    return math.sqrt(2 * (1 / cosine**2 - 1)) + 1e-6


def noise_of(difference: Difference) -> float:
    """What float32 noise is taken for in a model whose results differ so when the last bits of its inputs change."""
    return min(max(FLOAT32_NOISE, _TIMES * difference.relative), _MOST)


def widened(noise: float, optimized: Difference) -> float:
    """The noise, where ONNX Runtime's graph optimizations alone make such a difference: twice that at least."""
    return max(noise, min(2 * optimized.relative, _MOST))


def nudged(value: Any) -> Any:
    """An array of float32 or float64 with each element changed in its last bit, up or down; anything else as it is.

    Whole numbers stay: they are masks, labels and sizes, and exact.
    """
    if not isinstance(value, np.ndarray) or value.dtype not in (np.float32, np.float64):
        return value
    up = np.random.default_rng(0).integers(0, 2, value.shape).astype(bool)
    changed = np.nextafter(value, np.where(up, np.inf, -np.inf).astype(value.dtype))
    return np.where(value == np.rint(value), value, changed)


def compare(expected: Sequence[Any], found: Sequence[Any]) -> Difference:
    """Compare the outputs of one run.

    Numbers are compared as they are; sequences element by element; strings are the same or not.
    """
    worst = Difference()
    if len(expected) != len(found):
        return _UNLIKE
    ones, others = list(_arrays(expected)), list(_arrays(found))
    if len(ones) != len(others):
        return _UNLIKE
    for a, b in zip(ones, others, strict=True):
        worst = worst.worse(_one(a, b))
    return worst


_UNLIKE = Difference(math.inf, math.inf, -1.0, math.inf)
_EMPTY = np.array(None, object)


def _arrays(values: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from _arrays(value)
    elif isinstance(values, Mapping):
        for key in sorted(values, key=str):
            yield np.asarray(key)
            yield from _arrays([values[key]])
    else:
        yield _EMPTY if values is None else np.asarray(values)


def _one(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Difference:
    if a.shape != b.shape:
        return _UNLIKE
    if any(array.dtype == object or array.dtype.kind in "SU" for array in (a, b)):
        return Difference() if np.array_equal(a, b) else _UNLIKE
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide).ravel(), b.astype(wide).ravel()
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if same.all():
        return Difference()
    finite = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.where(finite, np.abs(x - y), math.inf))
    largest = float(errors.max())
    scale = float(np.abs(x[np.isfinite(x)]).max(initial=0.0))
    relative = largest / scale if scale > 0 else math.inf
    if not math.isfinite(largest):
        return Difference(largest, relative, -1.0, math.inf)
    scale = scale or 1.0  # so that squares neither overflow nor vanish
    length = float(np.linalg.norm(x[finite] / scale))
    noise = float(np.linalg.norm(errors[finite] / scale)) / length if length else math.inf
    return Difference(largest, relative, _cosine(x[finite], y[finite]), noise)


def _cosine(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    most = max(float(np.abs(x).max(initial=0.0)), float(np.abs(y).max(initial=0.0)))
    if most == 0:
        return 1.0
    x, y = x / most, y / most
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(np.vdot(x, y).real) / lengths if lengths > 0 else 0.0
