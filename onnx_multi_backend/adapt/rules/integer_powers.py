# SPDX-License-Identifier: Apache-2.0
"""Rule: powers of integers, where a kernel computes them in floating point."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.intervals.values import MULTIPLIED, NO_NUMBERS, SMALL
from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_TYPES = (_T.INT32, _T.INT64)
_FLOATS = (_T.FLOAT, _T.DOUBLE, _T.FLOAT16)
#: Up to this power, ONNX Runtime multiplies integers, whatever type the exponent has.
_SQUARED = 3
_EXPONENTS = (*_TYPES, _T.INT8, _T.INT16, _T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64)


def integer_powers(site: Site) -> Iterator[ModelProto]:
    """Multiply by the squares of the base that the exponent's bits choose. The result wraps around as the type does.

    A negative power of 1 and -1 is 1 or -1, any other is 0. The second body is for an engine that keeps 64 bits in 32.

    Of an exponent that is a floating-point number, a whole one is taken so too. Of any other of a run, and where the result leaves the
    type, it stays the cast of the power of floating-point numbers.
    """
    x, e = site.input(0), site.input(1)
    kind, given = site.elem_type(x), site.elem_type(e)
    if not site.is_("Pow") or kind not in _TYPES or given in NO_NUMBERS:
        return
    exponent = site.constant(e)
    scalar = exponent is not None and exponent.size == 1 and exponent.ndim <= (1 if site.rank(x) else 0)
    if (
        exponent is not None
        and scalar
        and math.isfinite(exponent.item())
        and exponent.item() == int(exponent.item())
        and 0 < exponent.item() <= MULTIPLIED
    ):
        body = Body(site)
        result = x
        for _ in range(int(exponent.item()) - 1):
            result = body("Mul", result, x)
        cast = given in _FLOATS and exponent.item() > _SQUARED
        yield body.finish(_or_cast(body, site, result, exponent, kind) if cast else result)
        return
    if exponent is not None and given in _FLOATS:
        with np.errstate(all="ignore"):
            whole = exponent.astype(np.float64)
        if not (np.abs(whole) <= SMALL).all() or (whole % 1).any():
            return
        body, most = Body(site), int(whole.max(initial=0))
        numbers = body.constant(whole.astype(np.int32))
        yield body.finish(
            _or_cast(body, site, _power(body, x, numbers, kind, _T.INT32, most.bit_length()), whole, kind)
        )
        return
    if given in (_T.FLOAT, _T.DOUBLE):
        body = Body(site)
        yield body.finish(_floating(body, x, e, kind, given))
    if given not in _EXPONENTS:
        return
    value = site.value(e)
    for width in (64 if given == _T.UINT64 else 63, 31) if _wide(given) == _T.INT64 else (31,):
        bits = width if value.high is None else min(width, int(value.high).bit_length())
        body = Body(site)
        yield body.finish(
            _power(
                body,
                x,
                e if given == _T.INT64 else body.cast(e, _wide(given)),
                kind,
                _wide(given),
                bits,
                signed=given != _T.UINT64,
            )
        )


def _wide(kind: int) -> int:
    return _T.INT64 if kind in (_T.INT64, _T.UINT32, _T.UINT64) else _T.INT32


def _floating(body: Body, x: str, exponent: str, kind: int, given: int) -> str:
    """Of a number other than 0, 1 and -1 no type holds a power from its number of bits on."""
    bits = INTEGER_BITS[kind]
    power = body("Pow", body.cast(x, given), exponent)
    zero, end = body.constant(0, given), body.constant(bits, given)
    whole = body("Equal", exponent, body("Floor", exponent))
    among = body("And", body("LessOrEqual", zero, exponent), body("Less", exponent, end))
    exact = body("And", body("And", whole, among), _held(body, power, kind, given))
    number = body.cast(body("Where", exact, exponent, zero), _T.INT32)
    product = _power(body, x, number, kind, _T.INT32, (bits - 1).bit_length(), signed=False)
    return str(body("Where", exact, product, body.cast(power, kind)))


def _held(body: Body, power: str, kind: int, given: int) -> str:
    """Whether a type holds a power. That is rounded: what is near the type's end counts as held, and is multiplied, which is right if it is."""
    return str(body("Less", body("Abs", power), body.constant((1 + 2**-20) * 2.0 ** (INTEGER_BITS[kind] - 1), given)))


def _or_cast(body: Body, site: Site, product: str, exponent: np.ndarray, kind: int) -> str:
    """A product, or the cast of the power of floating-point numbers where the type does not hold it."""
    value = site.value(site.input(0))
    most, bits = max(0, int(exponent.max(initial=0))), INTEGER_BITS[kind]
    if most <= 1 and exponent.min(initial=0) >= 0:
        return product
    low, high = value.low, value.high
    if low is not None and high is not None and max(-low, high, 0) ** min(most, bits) < 2 ** (bits - 1):
        return product
    x = body.cast(site.input(0), _T.FLOAT)
    power = body("Pow", x, body.constant(exponent.astype(np.float32)))
    return str(body("Where", _held(body, power, kind, _T.FLOAT), product, body.cast(power, kind)))


def _power(body: Body, x: str, exponent: str, kind: int, wide: int, bits: int, *, signed: bool = True) -> str:
    one, zero, none = body.constant(1, kind), body.constant(0, kind), body.constant(0, wide)
    square, result = x, ""
    for bit in range(max(bits, 1)):
        left_out = body("Equal", body("BitwiseAnd", exponent, body.constant(1 << bit, wide)), none)
        factor = body("Where", left_out, one, square)
        result = body("Mul", result, factor) if result else factor
        square = body("Mul", square, square)
    if not signed:
        return result
    unit = body("Equal", body("Mul", x, x), one)
    return str(body("Where", body("Less", exponent, none), body("Where", unit, result, zero), result))
