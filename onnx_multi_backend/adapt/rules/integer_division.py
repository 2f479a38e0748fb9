# SPDX-License-Identifier: Apache-2.0
"""Exact quotients and remainders of integers, where a kernel divides as floating-point numbers do."""

from __future__ import annotations

from onnx import TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto

#: The first quotient of two int32 is off by up to 2**8, the second by 1; after the third, the remainder is less than the divisor.
_STEPS = 3


def divided(body: Body, site: Site, kind: int) -> str:
    """Div, or Mod: divide the remainder again, then give it the dividend's sign.

    Products and differences wrap around, so a quotient that does not fit comes right as well.
    """
    if site.op_type == "Div":
        return quotient(body, site.input(0), site.input(1), kind)
    return _divided(body, site.input(0), site.input(1), kind, fmod=bool(site.attribute("fmod", 0)))


def quotient(body: Body, a: str, b: str, kind: int) -> str:
    """Div of two values."""
    return _divided(body, a, b, kind)


def _divided(body: Body, a: str, b: str, kind: int, *, fmod: bool | None = None) -> str:
    """The quotient; the remainder where `fmod` is given."""
    wide = _T.INT64 if kind in (_T.UINT32, _T.UINT64) else kind
    a, b = (body.cast(name, wide) if wide != kind else name for name in (a, b))
    zero, one, minus_one = (body.constant(n, wide) for n in (0, 1, -1))
    whole, rest = "", a
    for _ in range(_STEPS):
        part = body("Div", rest, b, name=GUARDED)
        rest = body("Sub", rest, body("Mul", part, b))
        whole = body("Add", whole, part) if whole else part
    negative = body("Less", a, zero)
    wrong = _opposed(body, rest, negative, zero)
    same = body("Equal", negative, body("Less", b, zero))
    moved = body("Where", wrong, body("Where", same, one, minus_one), zero)
    if fmod is None:
        result = body("Sub", whole, moved)
    else:
        result = body("Add", rest, body("Mul", moved, b))
        if not fmod:
            result = body("Where", _opposed(body, result, body("Less", b, zero), zero), body("Add", result, b), result)
    return str(body.cast(result, kind) if wide != kind else result)


def _opposed(body: Body, value: str, negative: str, zero: str) -> str:
    """Whether a number is not 0, and of another sign than this one."""
    return str(body("And", body("Not", body("Equal", value, zero)), body("Xor", body("Less", value, zero), negative)))
