# SPDX-License-Identifier: Apache-2.0
"""Which values may turn out to have no elements in a run whose inputs have some: what a Slice, a Compress or a detector's boxes make tells only there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from onnx import GraphProto, NodeProto

from onnx_multi_backend.models.graph_walk import canonical, may_hold_graphs, subgraphs

#: What may make a tensor without elements of one that has some.
EMPTYING = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Range", "Slice", "StringSplit"})
#: What computes lists of sizes, and from them. A Range of them is empty where an input is.
_OF_SIZES = frozenset(
    """Add Cast Concat Div Equal Gather Greater Identity Less Max Min Mod Mul Neg Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Slice Squeeze Sub
    Unsqueeze Where""".split()
)


def emptied(graphs: Sequence[GraphProto], given: Iterable[str] = ()) -> set[str]:
    """The values that may be made so, and what is computed of them and of what is given.

    What is computed of constants alone is none of these, nor are lists of sizes and what is computed of both.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        As `inner_first` has them.
    given : iterable of str
    """
    found, count = set(given), -1
    while len(found) > count:  # loops go round
        count = len(found)
        _follow(graphs, found)
    return found


def _follow(graphs: Sequence[GraphProto], found: set[str]) -> None:
    """Add what nodes make of what was found, and what may be emptied first."""
    known, sizes = {""}, {""}
    for graph in reversed(graphs):
        known.update(tensor.name for tensor in graph.initializer)
        known.difference_update(value.name for value in graph.input)
        for node in graph.node:
            inner = list(subgraphs(node))
            plain = not inner and not may_hold_graphs(node.op_type)
            if plain and known.issuperset(node.input):
                known.update(node.output)
            elif plain and (node.op_type == "Shape" or _is_of_sizes(node, known, sizes)):
                sizes.update(node.output)
            elif _empties(node) or not found.isdisjoint(node.input) or not found.isdisjoint(_results(inner)):
                found.update(name for name in node.output if name)
                found.update(value.name for body in inner for value in body.input)


def _empties(node: NodeProto) -> bool:
    return node.op_type in EMPTYING and not canonical(node.domain)


def _is_of_sizes(node: NodeProto, known: Set[str], sizes: Set[str]) -> bool:
    return node.op_type in _OF_SIZES and all(name in known or name in sizes for name in node.input)


def _results(bodies: Iterable[GraphProto]) -> set[str]:
    return {value.name for body in bodies for value in body.output}
