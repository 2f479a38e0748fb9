# SPDX-License-Identifier: Apache-2.0
"""Parts of a model that hold all that inference needs of some of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnx_multi_backend.adapt.single_node import reads

#: A part of more nodes than this share is not worth its copy.
_SHARE = 0.7


def with_ancestors(model: ModelProto, nodes: Iterable[NodeProto]) -> ModelProto:
    """These nodes of the main graph, and what they are computed from; the model itself where that is most of it.

    Parameters
    ----------
    model : onnx.ModelProto
        Without local functions; its nodes are in order.
    """
    wanted = {id(node) for node in nodes}
    needed: set[str] = set()
    kept: list[NodeProto] = []
    for node in reversed(model.graph.node):
        if id(node) in wanted or not needed.isdisjoint(node.output):
            needed.update(reads(node))
            kept.append(node)
    return model if len(kept) > _SHARE * len(model.graph.node) else _part(model, kept[::-1])


def with_constants(model: ModelProto, nodes: Sequence[NodeProto]) -> ModelProto:
    """These nodes of the main graph, and the constants that they read."""
    read = {name for node in nodes for name in reads(node)}
    constants = [n for n in model.graph.node if n.op_type == "Constant" and not read.isdisjoint(n.output)]
    return _part(model, [*constants, *nodes])


def _part(model: ModelProto, nodes: Sequence[NodeProto]) -> ModelProto:
    """These nodes, with the tensors that they read and the types that are declared."""
    graph = model.graph
    known = {name for node in nodes for name in (*reads(node), *node.output)}
    part = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    part.graph.node.extend(nodes)
    part.graph.input.extend(graph.input)
    part.graph.output.extend(value for value in graph.output if value.name in known)
    part.graph.value_info.extend(value for value in graph.value_info if value.name in known)
    part.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name in known)
    part.graph.sparse_initializer.extend(t for t in graph.sparse_initializer if t.values.name in known)
    return part


class Declared:
    """The values of a graph whose types are declared completely: inference adds nothing to them."""

    def __init__(self, graph: GraphProto) -> None:
        self._types = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
        self._open = {str(d.dim_param) for v in graph.input for d in v.type.tensor_type.shape.dim} - {""}
        self._constants = {tensor.name for tensor in graph.initializer}
        self._constants.update(node.output[0] for node in graph.node if node.op_type == "Constant")

    def tells(self, node: NodeProto) -> bool:
        """Whether the types of all that a node without subgraphs reads and makes are."""
        return all(
            name in self._constants or ((value := self._types.get(name)) is not None and self._is_complete(value))
            for name in (*node.input, *node.output)
            if name
        )

    def _is_complete(self, value: ValueInfoProto) -> bool:
        """Whether each size is a number, or the name of a size that the inputs leave open: inference does not find it either."""
        kind = value.type.tensor_type
        return (
            kind.elem_type != 0
            and kind.HasField("shape")
            and all(
                (dim.HasField("dim_value") and dim.dim_value >= 0) or dim.dim_param in self._open
                for dim in kind.shape.dim
            )
        )
