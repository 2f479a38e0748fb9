# SPDX-License-Identifier: Apache-2.0
"""Operators of two operands that OpenVINO treats rightly only in one order, whatever the numbers."""

from __future__ import annotations

from typing import Any

#: Integers of so many bits are not folded where the extreme of two constants is asked for.
_NOT_FOLDED = 16
#: Constants of so many bits stay as they are stored in a quantized model, and are cast in it.
_STORED = 8
_RESHAPING = frozenset({"Convert", "Reshape", "Squeeze", "Unsqueeze"})


def empty_last(op: Any) -> bool:
    """Multiply's operand without elements goes last, unless neither has any."""
    if not _is_empty(op.input_value(0)) or _is_empty(op.input_value(1)):
        return False
    swap(op)
    return True


def lower_rank_last(op: Any) -> bool:
    """Of a single small integer, the operand of the lower rank goes last."""
    kind = op.get_output_element_type(0)
    shapes = [value.get_partial_shape() for value in op.input_values()]
    if kind.is_real() or kind.bitwidth > _NOT_FOLDED or not all(shape.is_static for shape in shapes):
        return False
    if len(shapes[0]) >= len(shapes[1]) or any(size.get_length() != 1 for size in shapes[1]):
        return False
    swap(op)
    return True


def stored_last(op: Any) -> bool:
    """Multiply's operand that is a constant of 8 bits, cast, goes last, where the other one is of the run."""
    other = op.input_value(1)
    if not _is_stored(op.input_value(0)) or _is_stored(other) or _is_constant(other):
        return False
    swap(op)
    return True


def swap(op: Any) -> None:
    """Have a node read its two operands in the other order."""
    first, second = op.input_values()
    op.input(0).replace_source_output(second)
    op.input(1).replace_source_output(first)


def _is_stored(value: Any) -> bool:
    node = value.get_node()
    if node.get_type_name() != "Convert" or node.input_value(0).get_node().get_type_name() != "Constant":
        return False
    kind = node.get_input_element_type(0)
    return bool(kind.is_integral() and kind.bitwidth <= _STORED)


def _is_constant(value: Any) -> bool:
    """Whether a value is a constant, in the axes that it is given at most, as the scales of channels are."""
    node = value.get_node()
    while node.get_type_name() in _RESHAPING:
        node = node.input_value(0).get_node()
    return bool(node.get_type_name() == "Constant")


def _is_empty(value: Any) -> bool:
    shape = value.get_partial_shape()
    return bool(shape.rank.is_static and any(size.is_static and size.get_length() == 0 for size in shape))
