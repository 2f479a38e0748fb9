# SPDX-License-Identifier: Apache-2.0
"""Keeping nodes apart that an engine would compute together: with the larger of a value and itself, which is that value, between them."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, helper

from onnx_multi_backend.models.graph_walk import subgraphs


def larger(read: str, made: str, *, name: str) -> NodeProto:
    """The larger of a value and itself; no other node has the name."""
    return helper.make_node("Max", [read, read], [made], name=name)


def put_back(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    """Give a graph these nodes, its own ones among them."""
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(kept)


def inner_first(graph: GraphProto) -> list[GraphProto]:
    """A graph and its subgraphs; the inner ones first, since a node is copied with them."""
    return [*(g for node in graph.node for body in subgraphs(node) for g in inner_first(body)), graph]
