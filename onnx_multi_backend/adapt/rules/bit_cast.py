# SPDX-License-Identifier: Apache-2.0
"""Rule: BitCast of bool, and between integers of one width."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site


def bit_cast(site: Site) -> Iterator[ModelProto]:
    """Read and write a bool as the byte 0 or 1 that it is, and let integers of one width wrap around."""
    if not site.is_("BitCast"):
        return
    source, to = site.elem_type(site.input(0)), site.attribute("to")
    if INTEGER_BITS.get(source, 0) == INTEGER_BITS.get(to, 1):
        wrapping = Body(site)
        yield wrapping.finish(wrapping.cast(site.input(0), to))
    body = Body(site, {"": max(site.opset, site.target)})
    if source == TensorProto.BOOL:
        byte = body.cast(site.input(0), TensorProto.UINT8)
        yield body.finish(byte if to == TensorProto.UINT8 else body("BitCast", byte, to=to))
    elif to == TensorProto.BOOL:
        byte = site.input(0) if source == TensorProto.UINT8 else body("BitCast", site.input(0), to=TensorProto.UINT8)
        yield body.finish(body.cast(byte, TensorProto.BOOL))
