# SPDX-License-Identifier: Apache-2.0
"""Walking a model: its nodes and tensors, those of subgraphs and local functions included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

_GRAPH, _GRAPHS, _TENSOR = AttributeProto.GRAPH, AttributeProto.GRAPHS, AttributeProto.TENSOR
_PLAIN = frozenset(getattr(AttributeProto, name) for name in ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS"))


def nodes_in(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """These nodes and every node of the subgraphs in their attributes."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            kind = attribute.type
            if kind == _GRAPH:
                yield from nodes_in(attribute.g.node)
            elif kind == _GRAPHS:
                for graph in attribute.graphs:
                    yield from nodes_in(graph.node)


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Every node of a model: main graph, subgraphs and local functions."""
    yield from nodes_in(model.graph.node)
    for function in model.functions:
        yield from nodes_in(function.node)


def canonical(domain: str) -> str:
    """The name of a domain in schemas: the default domain is empty."""
    return "" if domain == "ai.onnx" else domain


def operator_name(node: NodeProto) -> str:
    """``domain.OpType``, or ``OpType`` alone for the default domain."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def defaults_of(graph: GraphProto) -> frozenset[str]:
    """Names of the graph inputs that have a default: an initializer of the same name."""
    stored = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return frozenset(value.name for value in graph.input if value.name in stored)


def all_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor stored in a model: initializers and attributes."""

    def of_graph(graph: GraphProto) -> Iterator[TensorProto]:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        yield from of_nodes(graph.node)

    def of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
        for node in nodes:
            for attribute in node.attribute:
                kind = attribute.type
                if kind in _PLAIN:
                    continue
                if attribute.HasField("t"):
                    yield attribute.t
                if kind == _TENSOR:
                    continue
                yield from attribute.tensors
                if attribute.HasField("g"):
                    yield from of_graph(attribute.g)
                for graph in attribute.graphs:
                    yield from of_graph(graph)

    yield from of_graph(model.graph)
    for function in model.functions:
        yield from of_nodes(function.node)
