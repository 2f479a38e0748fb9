# SPDX-License-Identifier: Apache-2.0
"""Giving every value of a piece of a graph another name."""

from __future__ import annotations

from collections.abc import Callable

from onnx import GraphProto, NodeProto


def renamed(node: NodeProto, rename: Callable[[str], str]) -> NodeProto:
    """A copy of a node in which every value has its new name, those of subgraphs included.

    Parameters
    ----------
    node : onnx.NodeProto
    rename : callable
        The new name of a value; never asked for the empty name, which stands for nothing.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    _node(copy, rename)
    return copy


def renamed_graph(graph: GraphProto, rename: Callable[[str], str]) -> None:
    """Give every value of a graph its new name, in place."""
    for node in graph.node:
        _node(node, rename)
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = rename(value.name)  # type: ignore[attr-defined]
    for sparse in graph.sparse_initializer:
        sparse.values.name = rename(sparse.values.name)


def _node(node: NodeProto, rename: Callable[[str], str]) -> None:
    for names in (node.input, node.output):
        for i, name in enumerate(names):
            if name:
                names[i] = rename(name)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            renamed_graph(graph, rename)
