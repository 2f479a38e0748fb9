# SPDX-License-Identifier: Apache-2.0
"""Which values may turn out to have no elements in a run whose inputs have some: what a Slice, a Compress or a detector's boxes make tells only there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import GraphProto

from onnx_multi_backend.models.graph_walk import canonical, may_hold_graphs

#: What may make a tensor without elements of one that has some.
EMPTYING = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Range", "Slice", "StringSplit"})


def emptied(graphs: Sequence[GraphProto], given: Iterable[str] = ()) -> set[str]:
    """The values that may be made so, and what is computed of them and of what is given. What is computed of constants alone is none of these.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        As `inner_first` has them.
    given : iterable of str
    """
    found, known = set(given), {""}
    for graph in reversed(graphs):
        known.update(tensor.name for tensor in graph.initializer)
        known.difference_update(value.name for value in graph.input)
        for node in graph.node:
            if known.issuperset(node.input) and not may_hold_graphs(node.op_type):
                known.update(node.output)
            elif (node.op_type in EMPTYING and not canonical(node.domain)) or not found.isdisjoint(node.input):
                found.update(name for name in node.output if name)
    return found
