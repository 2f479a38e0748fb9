# SPDX-License-Identifier: Apache-2.0
"""Operators of two operands that treat NaN rightly only in one order."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.mends.operand_order import swap


def as_less(op: Any) -> bool:
    a, b = op.input_value(0), op.input_value(1)
    if not a.get_element_type().is_real():
        return False
    ov = runtime.load()
    less = (ov.opset8.less if op.get_type_name() == "Greater" else ov.opset8.less_equal)(b, a)
    less.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, less)
    return True


def constant_first(op: Any) -> bool:
    """NaN is kept where it is in the last operand: a constant goes there if it holds one, and first if it holds none."""
    a, b = op.input_value(0), op.input_value(1)
    constant = [value.get_node().get_type_name() == "Constant" for value in (a, b)]
    if not a.get_element_type().is_real() or constant[0] == constant[1]:
        return False
    place = constant.index(True)
    if _holds_nan(op.input_value(place).get_node()) == (place == 1):
        return False
    swap(op)
    return True


def _holds_nan(constant: Any) -> bool:
    data = constant.get_data()
    return bool((data != data).any())  # of bfloat16 too
