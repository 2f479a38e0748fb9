# SPDX-License-Identifier: Apache-2.0
"""Nodes of one graph that have the same name, which ONNX Runtime refuses: each gets a name of its own."""

from __future__ import annotations

from collections import Counter

from onnx import GraphProto, ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import subgraphs

#: What ONNX Runtime says of them.
SAME_NAME = "two nodes with same node name"


def with_own_names(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the second and later nodes of a name renamed; the first keeps it."""
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    count = _rename(copy.graph)
    if not count:
        return payload, ()
    change = Adaptation("node_names", "", f"renamed {count}", "ONNX Runtime takes no two nodes of one name in a graph")
    return payload.changed(copy, change), (change,)


def _rename(graph: GraphProto) -> int:
    """Rename the nodes of a graph and of its bodies; how many."""
    given = Counter(node.name for node in graph.node)
    seen: set[str] = set()
    count = 0
    for node in graph.node:
        if node.name in seen:
            node.name = _unused(node.name, given)
            count += 1
        elif node.name:
            seen.add(node.name)
        count += sum(map(_rename, subgraphs(node)))
    return count


def _unused(name: str, given: Counter[str]) -> str:
    """A name that no node has; `given` counts the nodes of each, and how far a name was numbered."""
    while (new := f"{name}_{given[name]}") in given:
        given[name] += 1
    given[new] += 1
    return new
