# SPDX-License-Identifier: Apache-2.0
"""Gathers of products that OpenVINO (2026.4) takes for rows of compressed weights.

A constant of 8 bits or less, cast and multiplied, is taken for such weights, and the other factor for their scale, be it an input of the model: the
result has the shape of the constant, holds other numbers, or the process ends.
"""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime

#: The widest weights.
_BITS = 8
#: What may stand between the product and the Gather, and between the constant and the product.
_BETWEEN = frozenset({"Convert", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_DECOMPRESSING = frozenset({"Convert", "Subtract"}) | _BETWEEN


def of_products(op: Any) -> bool:
    """The larger of a value and itself is that value, and is not taken for weights."""
    data = op.input_value(0)
    source = data
    while source.get_node().get_type_name() in _BETWEEN:
        source = source.get_node().input_value(0)
    product = source.get_node()
    if product.get_type_name() != "Multiply":
        return False
    operands = product.input_values()
    scaled = any(operand.get_node().get_type_name() == "Constant" for operand in operands)
    if scaled or not any(map(_is_weight, operands)):
        return False
    op.input(0).replace_source_output(runtime.load().opset8.maximum(data, data).output(0))
    return True


def _is_weight(value: Any) -> bool:
    """Whether a value is a constant of a few bits, made wider."""
    node = value.get_node()
    converted = False
    while node.get_type_name() in _DECOMPRESSING:
        converted |= node.get_type_name() == "Convert"
        node = node.input_value(0).get_node()
    kind = node.get_output_element_type(0)
    return bool(converted and node.get_type_name() == "Constant" and kind.is_integral() and kind.bitwidth <= _BITS)
