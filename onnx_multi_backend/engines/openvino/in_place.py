# SPDX-License-Identifier: Apache-2.0
"""A Softmax, or a scatter, in a loop of what every step reads: with 2026.4 it is computed in place, so that the next step reads its result."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.engines.openvino.inner_graphs import graphs_of
from onnx_multi_backend.models.contents import Contents

#: What is written into the memory of its input.
_OVERWRITING = frozenset({"ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate", "Softmax"})
#: Operators of ONNX that become one.
_OPERATORS = frozenset({"Attention", "Scatter", "ScatterElements", "ScatterND", "Softmax", "TensorScatter"})
#: What gives another shape to the same memory.
_VIEWS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})


def keep_inputs(read: Any, contents: Contents) -> tuple[Adaptation, ...]:
    """Have such a node overwrite the larger of a value and itself, which is that value, in the bodies of a read model.

    Parameters
    ----------
    read : openvino.Model
        Changed in place.
    contents : Contents
        Of what it was read from.
    """
    if not contents.holding or not (contents.has(_OPERATORS) or contents.model.functions):
        return ()
    changes = []
    for graph in graphs_of(read):
        if graph is read:
            continue
        for op in graph.get_ops():
            if op.get_type_name() not in _OVERWRITING or not _is_given(op.input_value(0)):
                continue
            x = op.input_value(0)
            op.input(0).replace_source_output(runtime.load().opset8.maximum(x, x).output(0))
            where = f"{op.get_type_name()} {op.get_friendly_name()!r}"
            reason = "in a loop OpenVINO computes it in place, and the next step reads the result in the input's place"
            changes.append(Adaptation("mend_frontend", where, "given a copy of its input", reason))
    return tuple(changes)


def _is_given(value: Any) -> bool:
    """Whether a value is an input of the body, in whatever shape."""
    node = value.get_node()
    while node.get_type_name() in _VIEWS:
        node = node.input_value(0).get_node()
    return bool(node.get_type_name() == "Parameter")
