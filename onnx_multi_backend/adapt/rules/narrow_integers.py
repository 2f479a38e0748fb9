# SPDX-License-Identifier: Apache-2.0
"""Rule: a Cast or CastLike to 4, 8 or 16 bits that a kernel leaves wider than its type."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_SIGNED = (_T.INT4, _T.INT8, _T.INT16)
_BITS = {_T.INT4: 4, _T.UINT4: 4, **{kind: bits for kind, bits in INTEGER_BITS.items() if bits <= 16}}
_FLOATS = (_T.FLOAT, _T.FLOAT16, _T.BFLOAT16, _T.DOUBLE)


def narrow_integers(site: Site) -> Iterator[ModelProto]:
    """Keep the low bits in int32, so that the Cast has nothing to cut off."""
    x, kind = site.input(0), cast_to(site)
    known = site.elem_type(x) in INTEGER_BITS or (site.elem_type(x) in _FLOATS and _BITS.get(kind) == 4)
    if not site.is_("Cast", "CastLike") or kind not in _BITS or not known:
        return
    body = Body(site, site.opsets) if _BITS[kind] == 4 else Body(site)  # 4 bits are younger than bodies
    value = body.cast(x, _T.INT32) if site.elem_type(x) != _T.INT32 else x
    yield body.finish(body.cast(_low_bits(body, value, kind), kind))


def cast_to(site: Site) -> int:
    """The element type that a Cast or a CastLike makes."""
    if site.op_type == "CastLike":
        return site.elem_type(site.input(1))
    to: int = site.attribute("to", 0)
    return to


def _low_bits(body: Body, value: str, kind: int) -> str:
    bits = _BITS[kind]
    mask = body.constant(2**bits - 1, _T.INT32)
    if kind not in _SIGNED:
        return str(body("BitwiseAnd", value, mask))
    half = body.constant(2 ** (bits - 1), _T.INT32)
    return str(body("Sub", body("BitwiseAnd", body("Add", value, half), mask), half))
