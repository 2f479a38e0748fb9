# SPDX-License-Identifier: Apache-2.0
"""Broadcasts that OpenVINO moves behind the arithmetic that reads them."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from onnx_multi_backend.engines.openvino import runtime

#: OpenVINO's arithmetic of two operands.
ARITHMETIC = frozenset(
    {
        "Add",
        "Divide",
        "FloorMod",
        "Maximum",
        "Minimum",
        "Mod",
        "Multiply",
        "Power",
        "SquaredDifference",
        "Subtract",
    }
)


def kept_before(op: Any) -> bool:
    """The larger of a value and itself is that value, and a Broadcast that two inputs read stays where it is.

    Behind the arithmetic, its shape is the largest of the operands' sizes, which is wrong for one of 0 and one of 1.
    """
    readers = op.output(0).get_target_inputs()
    while len(readers) == 1 and _changes_nothing(next(iter(readers)).get_node()):
        readers = next(iter(readers)).get_node().output(0).get_target_inputs()
    if len(readers) != 1:
        return False
    (reader,) = readers
    node = reader.get_node()
    if node.get_type_name() not in ARITHMETIC:
        return False
    other = node.input_value(1 - reader.get_index()).get_partial_shape()
    if other.rank.is_dynamic or not _may_be_emptied(op.get_output_partial_shape(0), other):
        return False
    value = reader.get_source_output()
    reader.replace_source_output(runtime.load().opset8.maximum(value, value).output(0))
    return True


def _changes_nothing(node: Any) -> bool:
    kind = node.get_type_name()
    same = kind == "Convert" and node.get_output_element_type(0) == node.get_input_element_type(0)
    return bool(kind == "Identity" or same)


def _may_be_emptied(shape: Any, other: Any) -> bool:
    """Whether one may have a size of 0 where the other has 1, or none."""
    if shape.rank.is_dynamic:
        return True
    pairs = zip_longest(reversed(list(shape)), reversed(list(other)))
    return any(
        size is not None
        and size.get_min_length() == 0
        and (beside is None or (beside.is_static and beside.get_length() == 1))
        for size, beside in pairs
    )
