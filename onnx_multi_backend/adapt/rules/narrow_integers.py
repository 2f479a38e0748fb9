# SPDX-License-Identifier: Apache-2.0
"""Rule: a Cast to 16 bits that a kernel leaves wider than its type."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_SIGNED = (_T.INT8, _T.INT16)


def narrow_integers(site: Site) -> Iterator[ModelProto]:
    """Keep the low bits in int32, so that the Cast has nothing to cut off."""
    x, kind = site.input(0), site.attribute("to")
    if not site.is_("Cast") or site.elem_type(x) not in INTEGER_BITS or INTEGER_BITS.get(kind, 64) > 16:
        return
    body = Body(site)
    value = body.cast(x, _T.INT32) if site.elem_type(x) != _T.INT32 else x
    yield body.finish(body.cast(_low_bits(body, value, kind), kind))


def _low_bits(body: Body, value: str, kind: int) -> str:
    bits = INTEGER_BITS[kind]
    mask = body.constant(2**bits - 1, _T.INT32)
    if kind not in _SIGNED:
        return str(body("BitwiseAnd", value, mask))
    half = body.constant(2 ** (bits - 1), _T.INT32)
    return str(body("Sub", body("BitwiseAnd", body("Add", value, half), mask), half))
