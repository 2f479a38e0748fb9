# SPDX-License-Identifier: Apache-2.0
"""Rule: BitShift of the types that a kernel lacks, signed ones among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_BITS: Mapping[int, int] = {
    _T.INT8: 8,
    _T.UINT8: 8,
    _T.INT16: 16,
    _T.UINT16: 16,
    _T.INT32: 32,
    _T.UINT32: 32,
    _T.INT64: 64,
    _T.UINT64: 64,
}
_SIGNED: frozenset[int] = frozenset({_T.INT8, _T.INT16, _T.INT32, _T.INT64})


def bit_shift(site: Site) -> Iterator[ModelProto]:
    """Shift in uint64, where the bits of every integer type have room, and cut the result back.

    Casts between integer types keep the low bits. A right shift of a negative number is the complement of the shifted
    complement. An amount that is negative, or not less than the width, leaves the sign's extension alone.
    Source: BitShift's documentation in opset 28.
    """
    x, y = site.input(0), site.input(1)
    kind = site.elem_type(x)
    if not site.is_("BitShift") or kind not in _BITS or kind == _T.UINT64:
        return
    body = Body(site)
    zero, minus_one = body.constant(0, _T.INT64), body.constant(-1, _T.INT64)
    amount, value = body.cast(y, _T.INT64), body.cast(x, _T.INT64)
    # Of uint64, an amount too large for int64 becomes negative, and is out of range all the same.
    enough = body(
        "And", body("GreaterOrEqual", amount, zero), body("Less", amount, body.constant(_BITS[kind], _T.INT64))
    )
    amount = body.cast(body("Where", enough, amount, zero), _T.UINT64)

    def shifted(bits: str, direction: str) -> str:
        moved = body("BitShift", body.cast(bits, _T.UINT64), amount, direction=direction)
        return str(body("Where", enough, body.cast(moved, _T.INT64), zero))

    if site.attribute("direction") == "LEFT":
        result = shifted(value, "LEFT")
    elif kind in _SIGNED:
        negative = body("Less", value, zero)
        moved = shifted(body("Where", negative, body("Sub", minus_one, value), value), "RIGHT")
        result = body("Where", negative, body("Sub", minus_one, moved), moved)
    else:
        result = shifted(value, "RIGHT")
    yield body.finish(body.cast(result, kind))
