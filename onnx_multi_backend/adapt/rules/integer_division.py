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
    wide = _T.INT64 if kind in (_T.UINT32, _T.UINT64) else kind
    a, b = (body.cast(name, wide) if wide != kind else name for name in (site.input(0), site.input(1)))
    zero, one, minus_one = (body.constant(n, wide) for n in (0, 1, -1))
    quotient, rest = "", a
    for _ in range(_STEPS):
        part = body("Div", rest, b, name=GUARDED)
        rest = body("Sub", rest, body("Mul", part, b))
        quotient = body("Add", quotient, part) if quotient else part
    negative = body("Less", a, zero)
    wrong = _opposed(body, rest, negative, zero)
    same = body("Equal", negative, body("Less", b, zero))
    moved = body("Where", wrong, body("Where", same, one, minus_one), zero)
    if site.op_type == "Div":
        result = body("Sub", quotient, moved)
    else:
        result = body("Add", rest, body("Mul", moved, b))
        if not site.attribute("fmod", 0):
            result = body("Where", _opposed(body, result, body("Less", b, zero), zero), body("Add", result, b), result)
    return str(body.cast(result, kind) if wide != kind else result)


def _opposed(body: Body, value: str, negative: str, zero: str) -> str:
    """Whether a number is not 0, and of another sign than this one."""
    return str(body("And", body("Not", body("Equal", value, zero)), body("Xor", body("Less", value, zero), negative)))
