# SPDX-License-Identifier: Apache-2.0
"""Exact sums of integers along axes that are known only at run time: a kernel that adds in float32 adds their digits."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.rules.integer_division import quotient
from onnx_multi_backend.adapt.rules.integer_sums import axes_of
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_OPERATORS = frozenset({"ReduceL1", "ReduceMean", "ReduceSum", "ReduceSumSquare"})
#: The signed type of each: an engine adds digits of both in the same way, but for the mean.
_SIGNED: Mapping[int, int] = {_T.INT32: _T.INT32, _T.INT64: _T.INT64, _T.UINT32: _T.INT32, _T.UINT64: _T.INT64}
#: Up to 2**16 digits of so many bits have a sum that is exact in float32.
_BITS = 8


def summed_in_digits(body: Body, site: Site, kind: int, width: int) -> str | None:
    """A reduction of integers that an engine keeps in `width` bits; the result wraps around.

    None where the shape and the axes are known, and running sums do.
    """
    if site.op_type not in _OPERATORS or kind not in _SIGNED or site.attribute("noop_with_empty_axes", 0):
        return None
    given_kind, kind = kind, _SIGNED[kind]
    if given_kind != kind and site.op_type not in ("ReduceSum", "ReduceSumSquare"):
        return None
    if site.shape(site.input(0)) is not None and axes_of(site) is not None:
        return None
    x, given = site.input(0), site.attribute("axes")
    axes = [site.input(1)] if site.has_input(1) else [body.ints(*given)] if given else []
    keepdims = site.attribute("keepdims", 1)
    if given_kind != kind:
        x = body.cast(x, kind)

    def summed(value: str) -> str:
        return body.cast(body("ReduceSum", value, *axes, keepdims=keepdims), kind)

    if site.op_type == "ReduceL1":
        x = body("Abs", x)
    elif site.op_type == "ReduceSumSquare":
        x = body("Mul", x, x)
    total, base, last = "", body.constant(2**_BITS, kind), width // _BITS - 1
    for place in range(last, -1, -1):
        bits = -1 if place == last else 2**_BITS - 1  # the last digit is signed
        masked = body.cast(body("BitwiseAnd", x, body.constant(bits << (_BITS * place), kind)), _T.FLOAT)
        digits = summed(body("Mul", masked, body.constant(2.0 ** (-_BITS * place), _T.FLOAT)))
        total = body("Add", body("Mul", total, base), digits) if total else digits
    if site.op_type != "ReduceMean":
        return total if given_kind == kind else body.cast(total, given_kind)
    one = body.constant(1, kind)
    count = summed(body("Expand", body.constant(1.0, _T.FLOAT), body("Shape", x)))
    return quotient(body, total, body("Where", body("Less", count, one), one, count), kind)
