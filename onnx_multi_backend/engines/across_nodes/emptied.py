# SPDX-License-Identifier: Apache-2.0
"""Which values may turn out to have no elements in a run whose inputs have some: what a Slice, a Compress or a detector's boxes make tells only there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from onnx import GraphProto, NodeProto

from onnx_multi_backend.models.graph_walk import canonical, may_hold_graphs

#: What may make a tensor without elements of one that has some.
EMPTYING = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Range", "Slice", "StringSplit"})

#: Of what is computed from sizes, these may be none.
_COUNTING = EMPTYING - {"Slice"}


def emptied(graphs: Sequence[GraphProto], given: Iterable[str] = ()) -> set[str]:
    """The values that may be made so, and what is computed of them and of what is given.

    What is computed of constants alone is none of these, nor are lists of sizes and what is computed of both.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        As `inner_first` has them.
    given : iterable of str
    """
    found, known, sizes = set(given), {""}, {""}
    for graph in reversed(graphs):
        known.update(tensor.name for tensor in graph.initializer)
        known.difference_update(value.name for value in graph.input)
        for node in graph.node:
            plain = not may_hold_graphs(node.op_type)
            if plain and known.issuperset(node.input):
                known.update(node.output)
            elif plain and (node.op_type == "Shape" or _is_of_sizes(node, known, sizes)):
                sizes.update(node.output)
            elif (node.op_type in EMPTYING and not canonical(node.domain)) or not found.isdisjoint(node.input):
                found.update(name for name in node.output if name)
    return found


def _is_of_sizes(node: NodeProto, known: Set[str], sizes: Set[str]) -> bool:
    """Whether a node computes of lists of sizes and constants, though not how many there are of something."""
    return node.op_type not in _COUNTING and all(name in known or name in sizes for name in node.input)
