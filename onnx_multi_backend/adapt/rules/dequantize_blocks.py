# SPDX-License-Identifier: Apache-2.0
"""Rule: a DequantizeLinear with a scale for each block of elements."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.rules.blocks import over_blocks
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto


def dequantize_blocks(site: Site) -> Iterator[ModelProto]:
    """Repeat scales and zero points over their blocks, subtract and multiply. Source: DequantizeLinear's documentation.

    Computed in float32, as ONNX Runtime does.
    """
    if not site.is_("DequantizeLinear") or not site.attribute("block_size", 0):
        return
    body = Body(site)
    repeated = over_blocks(body, site)
    result = body.cast(site.input(0), _T.FLOAT)
    if site.has_input(2):
        result = str(body("Sub", result, repeated(site.input(2))))
    result = str(body("Mul", result, repeated(site.input(1))))
    made = site.attribute("output_dtype", 0) or site.elem_type(site.input(1))
    yield body.finish(result if made == _T.FLOAT else body.cast(result, made))
