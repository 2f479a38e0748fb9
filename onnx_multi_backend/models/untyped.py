# SPDX-License-Identifier: Apache-2.0
"""Operators that end the process in onnx's inference where the type of what they read is not known (seen with onnx 1.23).

A value of an operator that onnx does not know has no type, so a valid model may hold such a node.
"""

from __future__ import annotations

from collections import Counter

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.models.graph_walk import FREE_INITIALIZERS, all_nodes, canonical, graphs_in, nodes_in

_CRASHING = frozenset(
    {("", "EyeLike"), ("", "RegexFullMatch"), ("ai.onnx.ml", "LabelEncoder"), ("ai.onnx.ml", "TreeEnsemble")}
)
#: The operators' names.
NAMES = frozenset(name for _, name in _CRASHING)

#: LabelEncoder's attributes that decide the type of its output.
_VALUES = {
    "values_floats": TensorProto.FLOAT,
    "values_int64s": TensorProto.INT64,
    "values_strings": TensorProto.STRING,
}

#: Before an operator's name: onnx knows nothing of it then, and its inference leaves the node out.
_UNKNOWN = "untyped."


def may_crash(model: ModelProto) -> bool:
    """Whether such a node reads a value whose type onnx's inference does not find."""
    nodes = [node for node in all_nodes(model) if _crashes(node)]
    if not nodes:
        return False
    if model.functions:  # what their bodies read is known for each call only
        return True
    behind = {name for node in nodes for name in node.output}
    if any(name in behind for node in nodes for name in node.input[:1]):  # the first has no type where it is not valid
        return True
    try:
        typed = onnx.shape_inference.infer_shapes(without(model))
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError, IndexError):  # of constants without elements
        return True
    graphs = list(graphs_in(typed.graph))
    made = Counter(name for graph in graphs for name in _made(graph))
    known = {
        value.name
        for graph in graphs
        for value in (*graph.value_info, *graph.input, *graph.output)
        if value.type.tensor_type.elem_type
    }
    if model.ir_version >= FREE_INITIALIZERS:  # before, an initializer that is no input has no type for the inference
        known.update(tensor.name for graph in graphs for tensor in graph.initializer)
    return any(made[name] > 1 or name not in known for node in nodes for name in node.input[:1])


def without(model: ModelProto) -> ModelProto:
    """A copy in which onnx's inference leaves such nodes out; what they make has the type that they name."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for graph in graphs_in(copy.graph):
        declared = {value.name for value in (*graph.value_info, *graph.output)}
        for node in graph.node:
            if not _crashes(node):
                continue
            kind = _named_type(node)
            if kind and node.output[0] not in declared:
                graph.value_info.add(name=node.output[0]).type.tensor_type.elem_type = kind
            node.op_type = _UNKNOWN + node.op_type
    for function in copy.functions:
        for node in nodes_in(function.node):
            if _crashes(node):
                node.op_type = _UNKNOWN + node.op_type
    return copy


def restore(model: ModelProto) -> ModelProto:
    """Undo in place what `without` changed."""
    for node in all_nodes(model):
        if node.op_type.removeprefix(_UNKNOWN) in NAMES:
            node.op_type = node.op_type.removeprefix(_UNKNOWN)
    return model


def _crashes(node: NodeProto) -> bool:
    return node.op_type in NAMES and (canonical(node.domain), node.op_type) in _CRASHING and bool(_named_type(node))


def _named_type(node: NodeProto) -> int:
    """The element type of what such a node makes, by its attributes; 0 where they do not tell: onnx's inference looks at the input then."""
    if node.op_type == "RegexFullMatch":
        return TensorProto.BOOL
    for attribute in node.attribute:
        if attribute.name == "dtype":
            return attribute.i
        if attribute.name in ("values_tensor", "leaf_weights"):
            return attribute.t.data_type
        if attribute.name in _VALUES:
            return _VALUES[attribute.name]
    return 0


def _made(graph: GraphProto) -> list[str]:
    """The names that a graph gives to values."""
    names = [*(v.name for v in graph.input), *(name for node in graph.node for name in node.output)]
    return [*names, *(t.name for t in graph.initializer if t.name not in names)]
