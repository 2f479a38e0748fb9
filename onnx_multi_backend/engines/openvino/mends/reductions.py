# SPDX-License-Identifier: Apache-2.0
"""Reductions of integers, which take in the arithmetic behind them."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.mends.folded import is_folded

#: What the plugin does not make a part of the reduction that it reads.
_STAYS_ALONE = frozenset({"Concat", "Result"})


def kept_alone(op: Any) -> bool:
    """The larger of a value and itself is that value, and what has two inputs from one node stays a node."""
    readers = op.output(0).get_target_inputs()
    if not op.get_output_element_type(0).is_integral_number() or is_folded(op.input_value(0).get_node()):
        return False
    if all(_leaves_alone(reader.get_node()) for reader in readers):
        return False
    larger = runtime.load().opset8.maximum(op, op)
    for reader in readers:
        reader.replace_source_output(larger.output(0))
    return True


def _leaves_alone(reader: Any) -> bool:
    """Whether what reads a reduction is not made a part of it. Booleans are reduced as integers of 8 bits."""
    kind = reader.get_type_name()
    return kind in _STAYS_ALONE or (
        kind == "Convert" and bool(reader.get_output_element_type(0) == runtime.load().Type.boolean)
    )
