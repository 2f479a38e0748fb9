# SPDX-License-Identifier: Apache-2.0
"""Rule: integers of 8 and 16 bits, where a kernel limits a result or leaves it wider than its type."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_SIGNED = (_T.INT8, _T.INT16)
_OPERATORS = ("Abs", "Add", "BitwiseNot", "Div", "Mod", "Mul", "Neg", "ScatterElements", "ScatterND", "Sub")


def narrow_integers(site: Site) -> Iterator[ModelProto]:
    """Compute in int32, and keep the low bits of the result."""
    x = site.input(0)
    kind = site.attribute("to") if site.is_("Cast") else site.elem_type(x)
    if kind not in INTEGER_BITS or INTEGER_BITS[kind] > 16:
        return
    body = Body(site)
    if site.is_("Cast") and site.elem_type(x) in INTEGER_BITS:
        result = body.cast(x, _T.INT32) if site.elem_type(x) != _T.INT32 else x
    elif site.is_(*_OPERATORS):
        node = NodeProto()
        node.CopyFrom(site.node)
        for i, name in enumerate(node.input):
            if name and site.elem_type(name) == kind:
                node.input[i] = body.cast(name, _T.INT32)
        result = body.add(node)[0]
    else:
        return
    yield body.finish(body.cast(_low_bits(body, result, kind), kind))


def _low_bits(body: Body, value: str, kind: int) -> str:
    bits = INTEGER_BITS[kind]
    mask = body.constant(2**bits - 1, _T.INT32)
    if kind not in _SIGNED:
        return str(body("BitwiseAnd", value, mask))
    half = body.constant(2 ** (bits - 1), _T.INT32)
    return str(body("Sub", body("BitwiseAnd", body("Add", value, half), mask), half))
