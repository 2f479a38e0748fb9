# SPDX-License-Identifier: Apache-2.0
"""Integers that OpenVINO computes wrongly before anything runs: what is made of constants and shapes alone."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.mends.ranges import PASSES_ON


def is_folded(node: Any) -> bool:
    """Whether it is a constant, or becomes one before anything runs: a shape that is known."""
    kind = node.get_type_name()
    return kind == "Constant" or (kind == "ShapeOf" and bool(node.input_value(0).get_partial_shape().is_static))


#: So many different nodes are looked through for what becomes a constant.
_MOST_FOLDED = 256
#: What makes no negative numbers of others.
_KEEPS_SIGNS = frozenset({"Add", "Concat", "Divide", "Maximum", "Minimum", "Multiply"})
#: The same, of the first input.
_KEEPS_FIRST = PASSES_ON | {
    "Broadcast",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "Split",
    "VariadicSplit",
}


def cut_off(op: Any) -> bool:
    """What is divided while the model runs is cut off anyway, and so are quotients of numbers that are not negative.

    A constant that is broadcast in a run is divided before that.
    """
    if not op.get_output_element_type(0).is_integral_number() or not op.get_attributes()["m_pythondiv"]:
        return False
    negative = False
    constants: list[Any] = []
    todo, seen = [(op, True)], set()
    while todo:
        node, counts = todo.pop()
        if (mark := (node.get_name(), counts)) in seen:
            continue
        seen.add(mark)
        kind = node.get_type_name()
        if is_folded(node):
            if counts and kind == "Constant":
                constants.append(node)
            continue
        if len(seen) > _MOST_FOLDED or not node.get_input_size():
            return False
        negative |= counts and kind not in _KEEPS_SIGNS | _KEEPS_FIRST
        read = 1 if kind == "Broadcast" else node.get_input_size()
        todo += [(node.input_value(i).get_node(), counts and (i == 0 or kind not in _KEEPS_FIRST)) for i in range(read)]
    negative = negative or any((constant.get_data() < 0).any() for constant in constants)
    if op.get_output_element_type(0).bitwidth == 8:
        _divide_in_32_bits(op)
        return True
    if negative:
        op.set_attribute("m_pythondiv", False)
    return negative


def cut_off_inside(op: Any) -> bool:
    """A quotient of what a body reads from outside, which OpenVINO folds where it takes the body for its loop or branch."""
    if not op.get_output_element_type(0).is_integral_number() or not op.get_attributes()["m_pythondiv"]:
        return False
    if op.get_output_element_type(0).bitwidth == 8:
        _divide_in_32_bits(op)
    else:
        op.set_attribute("m_pythondiv", False)
    return True


def _divide_in_32_bits(op: Any) -> None:
    """What OpenVINO does not compute beforehand, 8 bits, is rounded to the nearest integer."""
    ov = runtime.load()
    ops = ov.opset8
    wide = [ops.convert(op.input_value(i), "i32") for i in (0, 1)]
    quotient = ops.divide(*wide)
    quotient.set_attribute("m_pythondiv", False)
    result = ops.convert(quotient, op.get_output_element_type(0).get_type_name())
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)


def taken_for_positive(op: Any) -> bool:
    """What is computed from constants and shapes alone; 0 is subtracted from, so that no -0 comes out."""
    x = op.input_value(0)
    if x.get_node().get_type_name() == "Constant" or not x.get_element_type().is_signed():
        return False
    todo, seen = [x.get_node()], set()
    while todo:
        node = todo.pop()
        if node.get_name() in seen:
            continue
        seen.add(node.get_name())
        if len(seen) > _MOST_FOLDED or node.get_type_name() in ("Parameter", "ReadValue"):
            return False
        if node.get_type_name() != "ShapeOf":
            todo += [node.input_value(i).get_node() for i in range(node.get_input_size())]
    ov = runtime.load()
    ops = ov.opset8
    zero = ops.constant(0, x.get_element_type())
    result = ops.select(ops.less_equal(x, zero), ops.subtract(zero, x), x)
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
    return True
