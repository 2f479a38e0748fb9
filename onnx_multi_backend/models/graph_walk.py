# SPDX-License-Identifier: Apache-2.0
"""Walking a model: its nodes and tensors, those of subgraphs and local functions included."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, defs

#: Since this version of the IR an initializer need not be an input of the graph.
FREE_INITIALIZERS = 4

_TENSOR = AttributeProto.TENSOR
_PLAIN = frozenset(getattr(AttributeProto, name) for name in ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS"))


def nodes_in(nodes: Iterable[NodeProto], *, functions: bool = True) -> Iterator[NodeProto]:
    """These nodes and every node of the subgraphs in their attributes.

    Parameters
    ----------
    nodes : iterable of onnx.NodeProto
    functions : bool
        Whether a local function may take an operator's name; if none does, most attributes need not be looked at.
    """
    waiting = [iter(nodes)]
    while waiting:
        for node in waiting[-1]:
            yield node
            if not (functions or node.domain or may_hold_graphs(node.op_type)):
                continue
            if inner := [graph.node for graph in subgraphs(node)]:
                waiting.append(chain.from_iterable(inner))
                break
        else:
            waiting.pop()


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs_in(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and every graph in its nodes' attributes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs_in(inner)


def bodies(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the attributes of a node that is no call of a local function: most operators have none."""
    return subgraphs(node) if node.domain or may_hold_graphs(node.op_type) else iter(())


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Every node of a model: main graph, subgraphs and local functions."""
    return _of_functions_too(model) if model.functions else nodes_in(model.graph.node, functions=False)


#: The operators of the default domain whose attributes hold graphs.
WITH_GRAPHS = frozenset({"If", "Loop", "Scan", "SequenceMap"})


@functools.cache
def may_hold_graphs(op_type: str | bytes) -> bool:
    """Bytes are a name that is not UTF-8."""
    return op_type in WITH_GRAPHS or not isinstance(op_type, str) or not defs.has(op_type)


def _of_functions_too(model: ModelProto) -> Iterator[NodeProto]:
    yield from nodes_in(model.graph.node)
    for function in model.functions:
        yield from nodes_in(function.node)
        for attribute in function.attribute_proto:
            for graph in (attribute.g, *attribute.graphs):
                yield from nodes_in(graph.node)


def put_back(holder: GraphProto | FunctionProto, nodes: Sequence[NodeProto]) -> None:
    """Give a graph or a function these nodes, its own ones among them."""
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del holder.node[:]
    holder.node.extend(kept)


def canonical(domain: str) -> str:
    """The name of a domain in schemas: the default domain is empty."""
    return "" if domain == "ai.onnx" else domain


def one_of_each_first(kinds: Sequence[str]) -> list[int]:
    """The places of these in another order: one of each kind, then a second of each, and so on."""
    seen: Counter[str] = Counter()
    rounds = []
    for place, kind in enumerate(kinds):
        rounds.append((seen[kind], place))
        seen[kind] += 1
    return [place for _, place in sorted(rounds)]


def operator_name(node: NodeProto) -> str:
    """``domain.OpType``, or ``OpType`` alone for the default domain."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def defaults_of(graph: GraphProto) -> frozenset[str]:
    """Names of the graph inputs that have a default: an initializer of the same name."""
    stored = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return frozenset(value.name for value in graph.input if value.name in stored)


def all_tensors(model: ModelProto) -> list[TensorProto]:
    """Every tensor stored in a model: initializers, attributes and the defaults of functions' attributes, dense or sparse."""
    found: list[TensorProto] = []
    _add_of_graph(model.graph, found)
    for function in model.functions:
        _add_of_nodes(function.node, found)
        _add_of_attributes(function.attribute_proto, found, checked=False)
    for training in model.training_info:
        _add_of_graph(training.initialization, found)
        _add_of_graph(training.algorithm, found)
    return found


def tensors_of(node: NodeProto) -> list[TensorProto]:
    """Every tensor stored in a node and the subgraphs in its attributes."""
    found: list[TensorProto] = []
    _add_of_attributes(node.attribute, found)
    return found


def _add_of_graph(graph: GraphProto, found: list[TensorProto]) -> None:
    found.extend(graph.initializer)
    for sparse in graph.sparse_initializer:
        found += (sparse.values, sparse.indices)
    _add_of_nodes(graph.node, found)


def _add_of_nodes(nodes: Iterable[NodeProto], found: list[TensorProto]) -> None:
    for node in nodes:
        if attributes := node.attribute[:]:  # a list is walked in half the time
            _add_of_attributes(attributes, found)


def _add_of_attributes(attributes: Sequence[AttributeProto], found: list[TensorProto], *, checked: bool = True) -> None:
    """The tensors of attributes. Where the ONNX checker looks, an attribute holds what its type says; elsewhere it may hold more."""
    for attribute in attributes:
        kind = attribute.type
        if checked and kind in _PLAIN:
            continue
        if attribute.HasField("t"):
            found.append(attribute.t)
        if checked and kind == _TENSOR:
            continue
        found.extend(attribute.tensors)
        sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
        for held in (*sparse, *attribute.sparse_tensors):
            found += (held.values, held.indices)
        if attribute.HasField("g"):
            _add_of_graph(attribute.g, found)
        for graph in attribute.graphs:
            _add_of_graph(graph, found)


def is_quantized(model: ModelProto) -> bool:
    """Whether a model has QuantizeLinear nodes."""
    return any(node.op_type == "QuantizeLinear" for node in all_nodes(model))


def names_read(graph: GraphProto) -> Iterator[str]:
    """The values that a graph reads, its subgraphs included, and those that it returns."""
    for node in graph.node:
        yield from node.input
        for inner in bodies(node):
            yield from names_read(inner)
    yield from (value.name for value in graph.output)


def constants_of(graph: GraphProto) -> dict[str, TensorProto]:
    """The tensors of a graph itself that no caller can replace, by name: initializers that are not defaults, and Constants."""
    found = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            found[node.output[0]] = node.attribute[0].t
    for value in graph.input:  # an initializer of its name is a default
        found.pop(value.name, None)
    return found
