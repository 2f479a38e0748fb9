# SPDX-License-Identifier: Apache-2.0
"""Sizes that onnx's inference takes for 0 where they are not known: of Attention with three axes (seen with onnx 1.23).

Source: ``AttentionPropagateElemTypeFromInputToOutput`` in onnx, which divides ``dim_value`` of a size that has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from onnx_multi_backend.models.graph_walk import all_nodes, canonical, subgraphs
from onnx_multi_backend.models.tensors import has_zero

#: Before the operator's name: onnx knows nothing of it then, and keeps what is declared.
_DECLARED = "declared."
ATTENTION = "Attention"

#: Types by the graph, counted as `_scopes` goes through them, and the name of a value: two branches may give the same name.
_Types = dict[tuple[int, str], TypeProto]


def taken_for_nothing(typed: ModelProto) -> _Types:
    """What such nodes make, with these sizes left open. Where an input is known to be empty, so may the result be."""
    if not any(_is_attention(node) for node in all_nodes(typed)):
        return {}
    found: _Types = {}
    for i, (graph, types) in enumerate(_scopes(typed.graph, {})):
        for node in graph.node:
            if not _is_attention(node) or any(_empty(types.get(name)) for name in node.input):
                continue
            for name in filter(None, node.output):
                if _empty(types.get(name)):
                    found[i, name] = _with_open_sizes(types[name])
    return found


def undeclared(model: ModelProto) -> ModelProto | None:
    """The model of one such node, whose results have no shapes that these sizes would contradict; None for any other node."""
    if not _is_attention(model.graph.node[0]):
        return None
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    return copy


def declaring(model: ModelProto, types: _Types) -> ModelProto:
    """A copy in which what makes these values is not looked into, and they have these types."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for i, (graph, _) in enumerate(_scopes(copy.graph, {})):
        for node in graph.node:
            made = [name for name in node.output if (i, name) in types]
            if not _is_attention(node) or not made:
                continue
            node.op_type = _DECLARED + ATTENTION
            declared = {value.name: value for value in (*graph.value_info, *graph.output)}
            for name in made:
                value = declared.get(name) or graph.value_info.add(name=name)
                if not value.type.tensor_type.HasField("shape"):
                    value.type.CopyFrom(types[i, name])
    return copy


def restore(model: ModelProto) -> ModelProto:
    """Undo in place what `declaring` changed of the nodes."""
    for node in all_nodes(model):
        if node.op_type == _DECLARED + ATTENTION:
            node.op_type = ATTENTION
    return model


def _scopes(graph: GraphProto, outer: dict[str, TypeProto]) -> Iterator[tuple[GraphProto, dict[str, TypeProto]]]:
    """Each graph with the types of the values that its nodes may read or make."""
    types = {**outer, **{v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output)}}
    yield graph, types
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _scopes(inner, types)


def _is_attention(node: NodeProto) -> bool:
    return node.op_type == ATTENTION and not canonical(node.domain)


def _empty(kind: TypeProto | None) -> bool:
    return kind is not None and has_zero(kind.tensor_type.shape.dim)


def _with_open_sizes(kind: TypeProto) -> TypeProto:
    copy = TypeProto()
    copy.CopyFrom(kind)
    for dim in copy.tensor_type.shape.dim:
        if dim.HasField("dim_value") and not dim.dim_value:
            dim.Clear()
    return copy
