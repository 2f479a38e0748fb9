# SPDX-License-Identifier: Apache-2.0
"""Fields that contradict others, or mean nothing where they stand: ONNX's checker does not look at them, and each tool reads them otherwise."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import nodes_in, operator_name
from onnx_multi_backend.models.tensors import element_name

_KNOWN = frozenset(TensorProto.DataType.values())


def odd_field(contents: Contents) -> str | None:
    """What is wrong with the first such field; None where there is none.

    An attribute refers to one of the local function around it, and to nothing in the model's own graph. No tool stores tensors in segments. The
    default of an input has its type. Source: onnx.proto.
    """
    model = contents.model
    if found := _reference(nodes_in(model.graph.node) if model.functions else contents.nodes):
        return found
    for tensor in contents.tensors:
        if tensor.HasField("segment"):
            return f"the tensor {tensor.name!r} is a segment of another, which nothing can read"
    return _default(model.graph)


def _default(graph: GraphProto) -> str | None:
    declared = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    for tensor in graph.initializer:
        kind = declared.get(tensor.name) or tensor.data_type
        if kind != tensor.data_type and _KNOWN.issuperset((kind, tensor.data_type)):
            return f"the input {tensor.name!r} is declared as {element_name(kind)}, and its initializer holds {element_name(tensor.data_type)}"
    return None


def _reference(nodes: Iterable[NodeProto]) -> str | None:
    for node in nodes:
        for attribute in node.attribute:
            if name := attribute.ref_attr_name:
                return (
                    f"the attribute {attribute.name!r} of {operator_name(node)} refers to the attribute {name!r} of a local function around it, "
                    "and there is none"
                )
    return None
