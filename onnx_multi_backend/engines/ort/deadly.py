# SPDX-License-Identifier: Apache-2.0
"""Nodes whose mere presence ends the process of ONNX Runtime, for models that may not be rewritten.

Seen with ONNX Runtime 1.24 and 1.31: LayerNormalization and DFT dereference an input that is counted and named "", Loop and
Split an output.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.single_node import inlined
from onnx_multi_backend.graph_walk import all_nodes, canonical

#: The input that is dereferenced where the node has as many, by operator: LayerNormalization's bias, DFT's axis.
_READ = {"LayerNormalization": 2, "DFT": 2}

#: Operators that write each output, named or not.
_WRITE_ALL = frozenset({"Loop", "Split"})


def why_deadly(model: ModelProto) -> str | None:
    """Why ONNX Runtime must not get a model as it is; None: it may."""
    if not any(node.op_type in _READ or node.op_type in _WRITE_ALL for node in all_nodes(model)):
        return None
    return next((words for node in all_nodes(inlined(model)) if (words := _words(node)) is not None), None)


def _words(node: NodeProto) -> str | None:
    if node.op_type in _WRITE_ALL and not canonical(node.domain) and "" in node.output:
        return (
            f'{node.op_type} {node.name!r} names an output "", which ends ONNX Runtime\'s process. Give it a name, or prepare '
            "with adapt=True"
        )
    index = _READ.get(node.op_type)
    if index is None or canonical(node.domain) or len(node.input) <= index or node.input[index]:
        return None
    return (
        f'{node.op_type} {node.name!r} names its last input "", which ends ONNX Runtime\'s process. Leave the input out, or '
        "prepare with adapt=True"
    )
