# SPDX-License-Identifier: Apache-2.0
"""Where there is something to change, in subgraphs and functions too; and the extremes that it is changed to."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

INTS = (0, 1, -1, 2, 3, -2, 7, 100, 255, 2**16, 2**31 - 1, -(2**31), 2**31, 2**32, 2**53, 2**63 - 1, -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e38, -1e38, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    *(b"", b"\xff\xfe", b"a" * 5000, b"\x00", b"linear", b"nearest", b"reflect", b"SAME_UPPER", b"bidirectional"),
    *(b"ij,jk->ik", b"...->...", b"add", b"DCR", b"%s%n", b"../..", b"(a+)+$"),
)


def graphs(model: ModelProto) -> list[GraphProto]:
    """The main graph and every graph inside."""
    found = [model.graph]
    for graph in found:
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    found.append(attribute.g)
                found.extend(attribute.graphs)
    return found


def all_nodes(model: ModelProto) -> list[NodeProto]:
    """Every node, those of functions too."""
    return [n for g in graphs(model) for n in g.node] + [n for f in model.functions for n in f.node]


def tensors(model: ModelProto) -> list[TensorProto]:
    """Every initializer and every tensor in an attribute."""
    found = [t for g in graphs(model) for t in g.initializer]
    return found + [a.t for n in all_nodes(model) for a in n.attribute if a.HasField("t")]


def names(model: ModelProto) -> Iterator[str]:
    """Every name of a value."""
    for graph in graphs(model):
        yield from (v.name for v in graph.input)
        yield from (t.name for t in graph.initializer)
        yield from (name for node in graph.node for name in node.output)


def pick(rng: random.Random, things: Any) -> Any:
    """One of them; None where there is none."""
    found = list(things)
    return rng.choice(found) if found else None


def extreme(rng: random.Random, near: int = 0) -> int:
    """An integer that is extreme, or next to one that is there."""
    if rng.random() < 0.3:
        return max(-(2**63), min(near + rng.choice((-1, 1, 2)), 2**63 - 1))
    return rng.choice(INTS)
