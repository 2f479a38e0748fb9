# SPDX-License-Identifier: Apache-2.0
"""Hiding from onnx's inference what is too long to be a shape."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.models.graph_walk import may_hold_graphs

#: The elements of one value, and of all of them, that onnx may take for shapes.
_LONGEST = 4096
_ALL = 1 << 20

#: What is added to the operator of a node that onnx is not to know, or whose constant is left out.
_HIDDEN, _LONG = "_omb_hidden", "_omb_long"
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
#: What onnx follows integers from: these read a type alone.
_TELLING = frozenset({"Shape", "Size"})


def follows_integers(graph: GraphProto) -> bool:
    """Whether onnx would follow integers through a node of a graph, or from one that tells a shape."""
    return any(node.op_type in _following() | _TELLING for inner in _graphs(graph) for node in inner.node)


def too_long(graph: GraphProto) -> list[int]:
    """The numbers of the nodes that would follow values which are too long, or may be."""
    nodes = (node for each in _graphs(graph) for node in each.node if node.op_type in _following())
    asked = frozenset(name for node in nodes for name in node.input)
    return list(_too_long(graph, asked, {}, {}, _Budget()))


class _Budget:
    """How many elements may still be followed, and the number of the node that is looked at."""

    def __init__(self) -> None:
        self.left = _ALL
        self.node = -1
        self.counted: set[str] = set()

    def takes(self, name: str, size: int | None) -> bool:
        """Whether a value may be followed; None: nobody knows how long it is."""
        if not size:
            return size is not None
        if size > _LONGEST or size > self.left:
            return False
        if name not in self.counted:
            self.counted.add(name)
            self.left -= size
        return True


def _too_long(
    graph: GraphProto,
    asked: frozenset[str],
    types: Mapping[str, TypeProto],
    constants: Mapping[str, TensorProto],
    budget: _Budget,
) -> Iterator[int]:
    """The numbers of the nodes, in the order of `_graphs`, that would follow values which are too long, or may be.

    `asked`: the values that such nodes read.
    """
    following, lengths = _following(), dict[str, int | None]()
    nodes = graph.node[:]
    inner = [body for node in nodes if node.domain or may_hold_graphs(node.op_type) for body in _inner(node)]
    values = (*graph.value_info, *graph.input, *graph.output)
    types = {**types, **{name: v.type for v in values if (name := v.name) in asked}}
    constants = {**constants, **{name: t for t in graph.initializer if (name := t.name) in asked}}
    for node in nodes:
        if node.op_type != "Constant" or asked.isdisjoint(node.output):
            continue
        if len(node.attribute) == 1 and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    for node in nodes:
        budget.node += 1
        if node.op_type not in following:
            continue
        takes = True
        for name in node.input:
            if name and takes:
                if name not in lengths:
                    lengths[name] = _length(name, types, constants)
                takes = budget.takes(name, lengths[name])
        if not takes:
            yield budget.node
    for subgraph in inner:
        yield from _too_long(subgraph, asked, types, constants, budget)


def _length(name: str, types: Mapping[str, TypeProto], constants: Mapping[str, TensorProto]) -> int | None:
    """As how many dimensions onnx would follow a value; None where that is not known yet."""
    if name in constants:
        tensor = constants[name]
        if tensor.data_type not in _INTEGERS or len(tensor.dims) > 1:
            return 0
        return tensor.dims[0] if tensor.dims else 1
    found = types.get(name)
    if found is None or not found.WhichOneof("value"):
        return None
    if not found.HasField("tensor_type"):
        return 0
    if not found.tensor_type.HasField("shape"):
        return None
    dims = found.tensor_type.shape.dim
    if len(dims) != 1:
        return 0
    return dims[0].dim_value if dims[0].HasField("dim_value") else None


def hiding(model: ModelProto, typed: ModelProto, hidden: set[int]) -> ModelProto:
    """A copy whose nodes of these numbers are of an operator that onnx does not know, the types of their outputs given."""
    copy = ModelProto()
    copy.CopyFrom(model)
    number = -1
    for graph, known in zip(_graphs(copy.graph), _graphs(typed.graph), strict=True):
        types = {v.name: v.type for v in (*known.value_info, *known.output)}
        declared = {v.name: v for v in (*graph.value_info, *graph.output)}
        for node in graph.node:
            number += 1
            if number not in hidden:
                continue
            node.op_type += _HIDDEN
            for name in node.output:
                if name in declared:
                    declared[name].type.CopyFrom(types[name])
                elif name in types:
                    graph.value_info.add(name=name, type=types[name])
    return copy


def shown(model: ModelProto) -> ModelProto:
    """Undo `hiding` in place, the types of values kept."""
    for graph in _graphs(model.graph):
        for node in graph.node:
            if (operator := node.op_type).endswith(_HIDDEN):
                node.op_type = operator.removesuffix(_HIDDEN)
    return model


def without_long_constants(model: ModelProto) -> tuple[ModelProto, bool]:
    """The model, its long integer constants replaced by their types, and whether there were any."""
    if not any(_is_long(t) for g in _graphs(model.graph) for t in _constants(g)):
        return model, False
    copy = ModelProto()
    copy.CopyFrom(model)
    for graph in _graphs(copy.graph):
        declared = {v.name for v in (*graph.input, *graph.value_info)}
        kept = [t for t in graph.initializer if not _is_long(t)]
        long = [(t.name, t) for t in graph.initializer if _is_long(t)]
        for node in graph.node:
            if node.op_type == "Constant" and any(_is_long(a.t) for a in node.attribute):
                long += [(node.output[0], a.t) for a in node.attribute]
                node.op_type += _LONG
        graph.value_info.extend(
            helper.make_tensor_value_info(name, t.data_type, list(t.dims)) for name, t in long if name not in declared
        )
        for node in graph.node:
            if node.op_type.endswith(_LONG):
                del node.attribute[:]
        del graph.initializer[:]
        graph.initializer.extend(kept)
    return copy, True


def restored(typed: ModelProto, model: ModelProto) -> ModelProto:
    """Undo `without_long_constants`, the types of values kept."""
    for graph, whole in zip(_graphs(typed.graph), _graphs(model.graph), strict=True):
        del graph.initializer[:]
        graph.initializer.extend(whole.initializer)
        for node, own in zip(graph.node, whole.node, strict=True):
            if node.op_type.endswith(_LONG):
                node.CopyFrom(own)
    return typed


def _is_long(tensor: TensorProto) -> bool:
    return tensor.data_type in _INTEGERS and len(tensor.dims) < 2 and any(d > _LONGEST for d in tensor.dims)


def _constants(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (a.t for a in node.attribute if a.HasField("t"))


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph, then the graphs in its nodes' attributes: always in the same order."""
    yield graph
    for node in graph.node:
        if node.domain or may_hold_graphs(node.op_type):
            for inner in _inner(node):
                yield from _graphs(inner)


def _inner(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


@functools.cache
def _following() -> frozenset[str]:
    """The operators that onnx follows integers through, by themselves or in the bodies that they stand for."""
    schemas: Any = onnx.defs.get_all_schemas_with_history()  # onnx's stubs lack `has_function`
    found = {
        s.name
        for s in schemas
        if s.has_data_propagation_function or (s.has_function and not s.has_type_and_shape_inference_function)
    }
    return frozenset(found - _TELLING)
