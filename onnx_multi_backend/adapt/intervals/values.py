# SPDX-License-Identifier: Apache-2.0
"""What a tensor's elements lie between, and interval arithmetic with it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import NamedTuple

from onnx import TensorProto

_T = TensorProto

#: Every integer up to here is a float32 too.
SMALL = 2**24

#: Lowest and highest number of each integer type.
LIMITS: dict[int, tuple[int, int]] = {
    _T.BOOL: (0, 1),
    _T.INT8: (-(2**7), 2**7 - 1),
    _T.UINT8: (0, 2**8 - 1),
    _T.INT16: (-(2**15), 2**15 - 1),
    _T.UINT16: (0, 2**16 - 1),
    _T.INT32: (-(2**31), 2**31 - 1),
    _T.UINT32: (0, 2**32 - 1),
    _T.INT64: (-(2**63), 2**63 - 1),
    _T.UINT64: (0, 2**64 - 1),
}

#: What is not in an order: an invalid model may have it as an exponent.
NO_NUMBERS = frozenset({_T.COMPLEX64, _T.COMPLEX128, _T.STRING})

_RANGES = frozenset(LIMITS.values())

#: The unsigned types whose differences an engine keeps in int32.
WIDE_UNSIGNED = frozenset({_T.UINT32, _T.UINT64})
#: Operators whose bodies read what a step before has computed.
STEPS = frozenset({"Loop", "Scan"})

#: BitShift in its two directions, as `arithmetic` knows them.
SHIFT_LEFT, SHIFT_RIGHT = "BitShift LEFT", "BitShift RIGHT"

_QUOTIENT, _TRUNCATED = "Div of unsigned numbers", "Div of integers"

#: What a size is taken for where it multiplies an input, and how many elements are summed where that is not known.
_SIZE = 2**12
_COUNT = 2**10


class Value(NamedTuple):
    """What is known of a tensor.

    Attributes
    ----------
    elem_type : int
        0 where it is not known.
    low, high : float or None
        Bounds of the elements; None where nothing is known.
    sources : frozenset of str
        The graph inputs of a wide integer type that the elements are computed from.
    assumed : bool
        The bounds rest on what sizes tensors have.
    wrapped : bool
        Nothing is known of the elements, but that they are unsigned and may have wrapped around below 0.
    rounded : bool
        They come of a float32 or a narrower type, so that a float32 holds each of them, however large.
    """

    elem_type: int = 0
    low: float | None = None
    high: float | None = None
    sources: frozenset[str] = frozenset()
    assumed: bool = False
    wrapped: bool = False
    rounded: bool = False

    def within(self, low: float, high: float) -> bool:
        """Whether the elements are known to lie between two numbers."""
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high

    @property
    def small(self) -> bool:
        """Whether a float32 holds every element."""
        return self.within(-SMALL, SMALL)

    @property
    def in_int32(self) -> bool:
        """Whether an int32 holds every element."""
        return self.within(*LIMITS[_T.INT32])

    @property
    def beyond_sizes(self) -> bool:
        """Whether there are elements that no size is as large as: a constant, not a type's range."""
        if self.low is None or self.high is None or self.assumed or self.sources or self.small:
            return False
        return (self.low, self.high) not in _RANGES

    @property
    def below_0(self) -> bool:
        """Whether there may be negative elements; of an unsigned type they have wrapped around."""
        return self.wrapped or (self.low is not None and self.low < 0)


#: The highest constant exponent of integers that is written as a product.
MULTIPLIED = 16
#: Sizes of tensors, and indices into them.
INDEX = Value(_T.INT64, 0, SMALL, assumed=True)
BOOL = Value(_T.BOOL, 0, 1)


@functools.cache
def bare(elem_type: int) -> Value:
    """A tensor of a type, its elements unknown; always the same object."""
    return Value(elem_type)


@functools.cache
def of_type(elem_type: int) -> Value:
    """A tensor of which its type alone is known."""
    return Value(elem_type, *LIMITS[elem_type]) if elem_type in LIMITS else bare(elem_type)


def may_have_wrapped(value: Value) -> bool:
    """Whether a value may be an unsigned number that has wrapped around below 0."""
    return value.elem_type in WIDE_UNSIGNED and value.below_0


def union(values: Iterable[Value]) -> Value:
    """Elements of several tensors."""
    first, *others = values
    for other in others:
        if other is first:
            continue
        known = None not in (first.low, other.low)
        first = Value(
            first.elem_type,
            min(first.low, other.low) if known else None,  # type: ignore[type-var]
            max(first.high, other.high) if known else None,  # type: ignore[type-var]
            first.sources | other.sources,
            (first.assumed or other.assumed) and not (first.beyond_sizes or other.beyond_sizes),
            not known and first.elem_type in WIDE_UNSIGNED and (first.below_0 or other.below_0),
        )
    return first


def arithmetic(op_type: str, operands: list[Value], count: int | None = None) -> Value:
    """The true, unlimited result of an operator, of the first operand's type.

    Parameters
    ----------
    count : int, optional
        How many elements are summed.
    """
    a = operands[0]
    sources, assumed, known = a.sources, a.assumed, a.low is not None and a.high is not None
    for v in operands[1:]:
        sources |= v.sources
        assumed = assumed or v.assumed
        known = known and v.low is not None and v.high is not None
    unlimited = Value(a.elem_type, sources=sources, assumed=assumed) if sources or assumed else bare(a.elem_type)
    if not known:
        wrapped = a.elem_type in WIDE_UNSIGNED and (op_type == "Sub" or any(v.below_0 for v in operands))
        if sources or assumed or wrapped:
            return Value(a.elem_type, sources=sources, assumed=assumed, wrapped=wrapped)
        return bare(a.elem_type)
    assumed = assumed and not any(v.beyond_sizes for v in operands)
    bounds = [(v.low, v.high) for v in operands]
    if sources:  # an input that is added to a size, or multiplied by one
        cap = _SIZE if op_type in ("Mul", "MatMul", "Gemm") else SMALL
        bounds = [
            (max(low, -cap), min(high, cap)) if v.assumed and not v.sources else (low, high)  # type: ignore[type-var]
            for v, (low, high) in zip(operands, bounds, strict=True)
        ]
    if op_type == "Div" and a.elem_type in LIMITS:
        op_type = _QUOTIENT if a.elem_type in WIDE_UNSIGNED else _TRUNCATED
    try:
        low, high = _bounds(op_type, bounds, _COUNT if count is None else count)  # type: ignore[arg-type]
        is_finite = math.isfinite(low) and math.isfinite(high)
    except (OverflowError, ValueError):  # of floating-point numbers near their limits, or of infinite ones
        return unlimited
    return Value(a.elem_type, low, high, sources, assumed) if is_finite else unlimited


def _bounds(op_type: str, operands: list[tuple[float, float]], count: int) -> tuple[float, float]:
    low, high = operands[0]
    if op_type == "Neg":
        return -high, -low
    if op_type == "Abs":
        return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if op_type == "Relu":
        return max(low, 0), max(high, 0)
    if op_type in ("Floor", "Round", "Ceil"):
        return math.floor(low), math.ceil(high)
    if op_type in ("ReduceSum", "CumSum"):
        return min(low, low * count), max(high, high * count)
    if op_type in ("ReduceSumSquare", "CumProd", "ReduceProd", "ReduceL1", "ReduceL2"):
        largest = max(abs(low), abs(high))
        most = {
            "ReduceSumSquare": largest * largest * count,
            "ReduceL1": largest * count,
            "ReduceL2": largest * count,
        }.get(op_type)
        if most is None:
            most = 2.0**64 if largest > 1 and count > 1 else largest
        return (-most if op_type in ("CumProd", "ReduceProd") and low < 0 else 0), most
    for other_low, other_high in operands[1:]:
        if op_type in (SHIFT_LEFT, SHIFT_RIGHT):
            low, high = _shifted(op_type, (low, high), (other_low, other_high))
        elif op_type in ("Add", "Sum"):
            low, high = low + other_low, high + other_high
        elif op_type == "Sub":
            low, high = low - other_high, high - other_low
        elif op_type in ("Mul", "MatMul", "Gemm"):
            products = [p * q for p in (low, high) for q in (other_low, other_high)]
            low, high = min(products), max(products)
            if op_type != "Mul":
                low, high = min(low * count, low), max(high * count, high)
        elif op_type == _QUOTIENT and low >= 0 and other_low > 0:
            low, high = low // other_high, high // other_low
        elif op_type in (_QUOTIENT, _TRUNCATED) and low >= 0 and other_low == 0:
            low = 0  # integers are not divided by 0
        elif op_type in ("Div", _QUOTIENT, _TRUNCATED):
            if other_low <= 0 <= other_high and op_type == "Div":
                raise ValueError  # floating-point numbers may be divided by less than 1
            if other_low <= 0 <= other_high:
                low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
            elif op_type == _TRUNCATED:
                quotients = [_quotient(p, q) for p in (low, high) for q in (other_low, other_high)]
                low, high = min(quotients), max(quotients)
            else:
                quotients = [p / q for p in (low, high) for q in (other_low, other_high)]
                low, high = math.floor(min(quotients)), math.ceil(max(quotients))
        elif op_type == "Mod":
            most = max(abs(other_low), abs(other_high))
            low, high = (-most if min(low, other_low) < 0 else 0), most
        elif op_type == "Max":
            low, high = max(low, other_low), max(high, other_high)
        elif op_type == "Min":
            low, high = min(low, other_low), min(high, other_high)
    return low, high


def _quotient(p: float, q: float) -> float:
    """Towards 0, as ONNX divides integers."""
    whole = abs(p) // abs(q)
    return whole if (p < 0) == (q < 0) else -whole


def _shifted(op_type: str, value: tuple[float, float], amounts: tuple[float, float]) -> tuple[float, float]:
    """By an amount that is not negative; one as large as the type is wide leaves 0 or -1."""
    low, high = value
    if op_type == SHIFT_RIGHT:
        return min(low, 0), max(high, 0)
    least, most = (2**amount for amount in amounts)
    return min(low * most, low * least), max(high * most, high * least)
