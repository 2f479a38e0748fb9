# SPDX-License-Identifier: Apache-2.0
"""Rule: BitShift of the types that a kernel lacks, signed ones among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_SIGNED: frozenset[int] = frozenset({_T.INT8, _T.INT16, _T.INT32, _T.INT64})

#: The bits that one quotient takes: by so many, three of them take 63.
_STEP = 21
#: Of the powers of two that int32 holds.
_LARGEST_POWER = 30


def bit_shift(site: Site) -> Iterator[ModelProto]:
    """Shift in uint64, where the bits of every integer type have room, or by a product or quotient in int32.

    An amount that is negative, or not less than the width, leaves the sign's extension alone. A right shift of a
    negative number is the complement of the shifted complement. Source: BitShift's documentation in opset 28.
    """
    kind = site.elem_type(site.input(0))
    if not site.is_("BitShift") or kind not in INTEGER_BITS or GUARDED in site.node.name:
        return
    amounts = site.constant(site.input(1))
    if kind in (_T.INT32, _T.UINT32) and site.attribute("direction") == "LEFT" and amounts is not None:
        yield _by_constants(site, amounts)
    if kind == _T.UINT64 and site.attribute("direction") == "RIGHT":
        yield _by_quotients(site)
    if kind != _T.UINT64:
        yield _shifted(site, _T.INT64, _by_shifting)
    if INTEGER_BITS[kind] < 64 and kind != _T.UINT32:
        yield _shifted(site, _T.INT32, _by_factor)
    overflows = site.attribute("direction") == "LEFT" and INTEGER_BITS[kind] < 32  # to the type's largest number
    if all(site.rank(site.input(i)) == 0 for i in (0, 1)) and not overflows:
        yield _as_vectors(site)


def _as_vectors(site: Site) -> ModelProto:
    """Shift a vector of one element, for an engine that makes one of scalars. A constant amount stays a constant: engines look at it."""
    body = Body(site)
    value, amount = (_as_vector(body, site, i) for i in (0, 1))
    moved = body("BitShift", value, amount, direction=site.attribute("direction"), name=GUARDED)
    return body.finish(body("Squeeze", moved, body.ints(0)))


def _as_vector(body: Body, site: Site, place: int) -> str:
    known = site.constant(site.input(place))
    if known is not None:
        return str(body.constant(known.reshape(1), site.elem_type(site.input(place))))
    return str(body("Unsqueeze", site.input(place), body.ints(0)))


def _shifted(site: Site, wide: int, move: Callable[[Body, str, str, str, int], str]) -> ModelProto:
    kind, direction = site.elem_type(site.input(0)), site.attribute("direction")
    body = Body(site)
    zero, minus_one = body.constant(0, wide), body.constant(-1, wide)
    value, amount = body.cast(site.input(0), wide), body.cast(site.input(1), wide)
    # Of uint64, an amount too large for int64 becomes negative, and is out of range anyway.
    enough = body(
        "And", body("GreaterOrEqual", amount, zero), body("Less", amount, body.constant(INTEGER_BITS[kind], wide))
    )
    amount = body("Where", enough, amount, zero)
    negative = body("Less", value, zero)
    if direction == "RIGHT" and kind in _SIGNED:
        value = body("Where", negative, body("Sub", minus_one, value), value)
    result = body("Where", enough, move(body, value, amount, direction, INTEGER_BITS[kind]), zero)
    if direction == "RIGHT" and kind in _SIGNED:
        result = body("Where", negative, body("Sub", minus_one, result), result)
    if direction == "LEFT" and INTEGER_BITS[kind] < 32:  # not every engine's Cast keeps the low bits
        half = body.constant(2 ** (INTEGER_BITS[kind] - 1) if kind in _SIGNED else 0, wide)
        low = body("Mod", body("Add", result, half), body.constant(2 ** INTEGER_BITS[kind], wide))
        result = body("Sub", low, half)
    return body.finish(body.cast(result, kind))


def _by_constants(site: Site, amounts: np.ndarray[Any, Any]) -> ModelProto:
    """Multiply 32 bits, which wrap around as shifted ones do; an amount out of range leaves nothing.

    By 2**31, which int32 does not hold, is twice by half of it: a sum, since engines join two products into one.
    """
    kind, body = site.elem_type(site.input(0)), Body(site)
    inside = (amounts >= 0) & (amounts < INTEGER_BITS[kind])
    first = np.where(inside, amounts, 0).clip(max=_LARGEST_POWER)
    factors = np.where(inside, 2**first, 0)
    value = body("Mul", site.input(0), body.constant(factors, kind))
    if (twice := inside & (amounts > _LARGEST_POWER)).any():
        more = body("Mul", site.input(0), body.constant(np.where(twice, factors, 0), kind))
        value = body("Add", value, more)
    return body.finish(value)


def _by_quotients(site: Site) -> ModelProto:
    """Divide by powers of two that int32 holds, one after the other; together they reach the last bit."""
    body, amount = Body(site), site.input(1)
    enough = body("Less", amount, body.constant(INTEGER_BITS[_T.UINT64], _T.UINT64))
    rest = body.cast(body("Where", enough, amount, body.constant(0, _T.UINT64)), _T.INT64)
    powers, most = body.constant(2 ** np.arange(_STEP + 1), _T.UINT64), body.constant(_STEP, _T.INT64)
    value = site.input(0)
    for _ in range(-(-(INTEGER_BITS[_T.UINT64] - 1) // _STEP)):
        step = body("Where", body("Less", rest, most), rest, most)
        value, rest = body("Div", value, body("Gather", powers, step, axis=0)), body("Sub", rest, step)
    return body.finish(body("Where", enough, value, body.constant(0, _T.UINT64)))


def _by_shifting(body: Body, value: str, amount: str, direction: str, bits: int) -> str:
    moved = body("BitShift", body.cast(value, _T.UINT64), body.cast(amount, _T.UINT64), direction=direction)
    return body.cast(moved, _T.INT64)


def _by_factor(body: Body, value: str, amount: str, direction: str, bits: int) -> str:
    # No larger powers than the type has bits: what engines compute in float32 is exact below 2**24.
    powers = body.constant(np.array([1 << i for i in range(min(bits, 31))] + [-(1 << 31)] * (bits == 32), np.int32))
    factor = body("Gather", powers, amount, axis=0)
    return str(body("Mul" if direction == "LEFT" else "Div", value, factor))
