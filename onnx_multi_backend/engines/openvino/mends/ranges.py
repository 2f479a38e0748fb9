# SPDX-License-Identifier: Apache-2.0
"""Ranges that run backwards, and loops of a negative number of steps."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime

#: What passes numbers on as they are, or chooses among them.
PASSES_ON = frozenset({"Convert", "Squeeze", "Unsqueeze", "Reshape", "Gather", "StridedSlice", "Slice"})


def stops_at_start(op: Any) -> bool:
    start, stop, step = (op.input_value(i) for i in range(3))
    if start.get_element_type() != stop.get_element_type():
        return False  # no Range of ONNX: the frontend writes windows (HannWindow) with one
    known, first, last = (_number(value) for value in (step, start, stop))
    if None not in (known, first, last) or (known is not None and known > 0 and first == 0 and _at_least_zero(stop)):
        return False
    ops = runtime.load().opset8
    if known is None:
        below = ops.less(step, ops.constant(0, step.get_element_type()))
        end = ops.select(below, ops.minimum(stop, start), ops.maximum(stop, start))
    else:
        end = (ops.maximum if known > 0 else ops.minimum)(stop, start)
    op.input(1).replace_source_output(end.output(0))
    return True


def _number(value: Any) -> float | None:
    node = value.get_node()
    return float(node.get_data().item()) if node.get_type_name() == "Constant" and node.get_data().size == 1 else None


def _at_least_zero(value: Any) -> bool:
    node = value.get_node()
    while node.get_type_name() in PASSES_ON:
        node = node.input_value(0).get_node()
    return node.get_type_name() in ("ShapeOf", "Relu")


def counts_from_zero(op: Any) -> bool:
    count = op.input_value(0)
    if count.get_node().get_type_name() == "Constant" or _at_least_zero(count):
        return False
    ops = runtime.load().opset8
    op.input(0).replace_source_output(ops.maximum(count, ops.constant(0, count.get_element_type())).output(0))
    return True
