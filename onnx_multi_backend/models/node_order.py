# SPDX-License-Identifier: Apache-2.0
"""Nodes in the order that ONNX asks for: each after those whose outputs it reads.

Engines sort the nodes themselves, and run models in any order. Some tools write such models: ONNX Runtime's float16 converter puts the
casts of the inputs at the end. What reads a model here relies on the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto


def in_order(model: ModelProto) -> ModelProto:
    """A copy with all nodes in order, those of subgraphs and local functions too; nodes on a cycle stay where they are."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for nodes in (copy.graph.node, *(function.node for function in copy.functions)):
        _sort(nodes)
    return copy


def _sort(nodes: Sequence[NodeProto]) -> dict[str, None]:
    """Sort in place; what is in order already stays as it is. Returns the names that are read and not made here."""
    reads = [dict.fromkeys(node.input) for node in nodes]
    for node, names in zip(nodes, reads, strict=True):
        for graph in _graphs(node):
            names.update(_sort(graph.node))
    maker = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    order = _order([[maker[name] for name in names if name in maker] for names in reads])
    if order != list(range(len(nodes))):
        kept = []
        for place in order:
            node = NodeProto()
            node.CopyFrom(nodes[place])
            kept.append(node)
        for node, other in zip(nodes, kept, strict=True):
            node.CopyFrom(other)
    return {name: None for place in order for name in reads[place] if name not in maker}


def _order(read: Sequence[Sequence[int]]) -> list[int]:
    """The places of the nodes, each after those that it reads."""
    order: list[int] = []
    done: set[int] = set()
    entered: set[int] = set()
    for first in range(len(read)):
        waiting = [first]
        while waiting:
            place = waiting[-1]
            missing = [] if place in entered else [p for p in read[place] if p not in entered]
            entered.add(place)
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            if place not in done:
                done.add(place)
                order.append(place)
    return order


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
