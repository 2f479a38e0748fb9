# SPDX-License-Identifier: Apache-2.0
"""Rule: BitCast of bool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_INTEGERS: Mapping[int, int] = {
    _T.INT8: 8,
    _T.UINT8: 8,
    _T.INT16: 16,
    _T.UINT16: 16,
    _T.INT32: 32,
    _T.UINT32: 32,
    _T.INT64: 64,
    _T.UINT64: 64,
}


def bit_cast(site: Site) -> Iterator[ModelProto]:
    """Read and write a bool as the byte 0 or 1 that it is, and let integers of one width wrap around."""
    if not site.is_("BitCast"):
        return
    source, to = site.elem_type(site.input(0)), site.attribute("to")
    if _INTEGERS.get(source, 0) == _INTEGERS.get(to, 1):
        wrapping = Body(site)
        yield wrapping.finish(wrapping.cast(site.input(0), to))
    body = Body(site, {"": max(site.opset, site.target)})
    if source == TensorProto.BOOL:
        byte = body.cast(site.input(0), TensorProto.UINT8)
        yield body.finish(byte if to == TensorProto.UINT8 else body("BitCast", byte, to=to))
    elif to == TensorProto.BOOL:
        byte = site.input(0) if source == TensorProto.UINT8 else body("BitCast", site.input(0), to=TensorProto.UINT8)
        yield body.finish(body.cast(byte, TensorProto.BOOL))
