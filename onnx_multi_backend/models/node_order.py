# SPDX-License-Identifier: Apache-2.0
"""Nodes in the order that ONNX asks for: each after those whose outputs it reads.

Engines sort the nodes themselves, and run models in any order. Some tools write such models: ONNX Runtime's float16 converter puts the
casts of the inputs at the end. What reads a model here relies on the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.models.graph_walk import nodes_in


def in_order(model: ModelProto) -> ModelProto:
    """A copy with all nodes in order, those of subgraphs and local functions too; nodes on a cycle stay where they are."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for nodes in (copy.graph.node, *(function.node for function in copy.functions)):
        _sort(nodes)
    return copy


def _sort(nodes: Sequence[NodeProto]) -> None:
    """Sort in place; what is in order already stays as it is."""
    for node in nodes:
        for graph in _graphs(node):
            _sort(graph.node)
    order = _order(nodes)
    if order != list(range(len(nodes))):
        kept = []
        for place in order:
            node = NodeProto()
            node.CopyFrom(nodes[place])
            kept.append(node)
        for node, other in zip(nodes, kept, strict=True):
            node.CopyFrom(other)


def _order(nodes: Sequence[NodeProto]) -> list[int]:
    """The places of the nodes, each after those that it reads."""
    maker = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    order: list[int] = []
    done: set[int] = set()
    entered: set[int] = set()
    for first in range(len(nodes)):
        waiting = [first]
        while waiting:
            place = waiting[-1]
            missing = [] if place in entered else [p for p in _read(nodes[place], maker) if p not in entered]
            entered.add(place)
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            if place not in done:
                done.add(place)
                order.append(place)
    return order


def _read(node: NodeProto, maker: dict[str, int]) -> list[int]:
    """The places of the nodes whose outputs a node and its subgraphs read."""
    return [maker[name] for inner in nodes_in([node]) for name in inner.input if name in maker]


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
