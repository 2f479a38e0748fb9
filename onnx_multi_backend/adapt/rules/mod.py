# SPDX-License-Identifier: Apache-2.0
"""Rules: Mod of floating-point numbers, without rounding or with the sign of the divisor."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_FLOAT = TensorProto.FLOAT
_BITS = 22
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def divides_back(site: Site) -> bool:
    """Whether it is a Mod with the sign of the dividend that no rule has guarded."""
    of_floats = site.elem_type(site.input(0)) in _FLOATS
    return site.is_("Mod") and bool(site.attribute("fmod", 0)) and of_floats and GUARDED not in site.node.name


def remainder(site: Site) -> Iterator[ModelProto]:
    """Write ``fmod=1`` without rounding, for an engine that divides and multiplies back.

    Two steps take the divisor times 2**22, and the divisor, off as often as they go into what is left. How often that is needs no
    more than 22 bits, so that it is found by a division but for 1, and the product has a float32 for its high and one for its low
    bits. What is left fits a float32 each time. So the result is exact for quotients below 2**44.

    Source: T. J. Dekker, A floating-point technique for extending the available precision, 1971 (the product of two numbers).
    """
    if not divides_back(site):
        return
    kind = site.elem_type(site.input(0))
    body = Body(site, site.opsets)
    a, b = (name if kind == _FLOAT else body.cast(name, _FLOAT) for name in site.node.input)
    x, y = body("Abs", a), body("Abs", b)
    # Near the ends of the range, products and their low bits would leave it.
    little, much = body("Less", y, _number(body, 2.0**-40)), body("Less", _number(body, 2.0**80), y)

    def scale(power: int) -> str:
        plain = body("Where", much, _number(body, 2.0**-power), _number(body, 1))
        return str(body("Where", little, _number(body, 2.0**power), plain))

    up = scale(64)
    rest, divisor = body("Mul", x, up), body("Mul", y, up)
    rest = _taken_off(body, rest, body("Mul", divisor, _number(body, 2.0**_BITS)))
    rest = body("Mul", _taken_off(body, rest, divisor), scale(-64))
    sign = body("Where", body("Less", a, _number(body, 0)), _number(body, -1), _number(body, 1))
    result = body("Where", body("Less", x, y), a, body("Mul", rest, sign))
    yield body.finish(result if kind == _FLOAT else body.cast(result, kind))


def _number(body: Body, value: float) -> str:
    return body.constant(value, _FLOAT)


def _taken_off(body: Body, x: str, y: str) -> str:
    """What is left of a number that is not negative, less than 2**22 times the other."""
    times = body("Round", body("Div", x, y))  # what is left is no more than about half a divisor, and fits
    high = body("Mul", body("Floor", body("Mul", times, _number(body, 2.0**-11))), _number(body, 2.0**11))
    low = body("Sub", times, high)
    twice = body("Mul", y, _number(body, 2.0**12 + 1))
    y_high = body("Sub", twice, body("Sub", twice, y))
    y_low = body("Sub", y, y_high)
    product = body("Mul", times, y)
    error = body("Sub", body("Mul", high, y_high), product)
    for one, other in ((low, y_high), (high, y_low), (low, y_low)):  # in this order, no sum needs more than 24 bits
        error = body("Add", error, body("Mul", one, other))
    rest = body("Sub", body("Sub", x, product), error)
    rest = body("Where", body("Less", rest, _number(body, 0)), body("Add", rest, y), rest)
    return str(body("Where", body("Less", x, y), x, rest))


def floor_mod(site: Site) -> Iterator[ModelProto]:
    """Write ``fmod=0`` with ``fmod=1``: a remainder whose sign is not the divisor's gets the divisor added.

    A zero takes the divisor's sign. Source: Mod's documentation in opset 28.
    """
    a, b = site.input(0), site.input(1)
    kind = site.elem_type(a)
    if not site.is_("Mod") or site.attribute("fmod", 0) or kind not in _FLOATS:
        return
    body = Body(site)
    zero = body.constant(0.0, kind)
    rest = body("Mod", a, b, fmod=1)
    below = body("Less", b, zero)
    other = body("And", body("Not", body("Equal", rest, zero)), body("Xor", body("Less", rest, zero), below))
    moved = body("Where", other, body("Add", rest, b), rest)
    # A product, because the Where of ONNX Runtime makes 0 of -0.
    sign = body("Sub", body.constant(1, kind), body("Mul", body.constant(2, kind), body.cast(below, kind)))
    yield body.finish(body("Mul", body("Abs", moved), sign))
