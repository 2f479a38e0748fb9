# SPDX-License-Identifier: Apache-2.0
"""The states and rows of a Loop that no result needs: nothing reads them at the end, and what the states are in the steps nothing but such states."""

from __future__ import annotations

from collections.abc import Set

from onnx import NodeProto

from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import graphs_in, subgraphs

#: The inputs of a Loop, and of its body, before the states; and the results of the body before them.
_BEFORE_STATES, _BEFORE_RESULTS = 2, 1


def has_unread_rows(contents: Contents) -> bool:
    """Whether nothing reads the rows that a Loop collects."""
    loops = [node for node in contents.of("Loop") if len(node.output) > len(node.input) - _BEFORE_STATES]
    if not loops:
        return False
    read = {name for names in contents.reads for name in names}
    read.update(value.name for graph in graphs_in(contents.model.graph) for value in graph.output)
    read.update(name for function in contents.model.functions for name in function.output)
    return any(name not in read for node in loops for name in node.output[len(node.input) - _BEFORE_STATES :])


def leave_states_out(node: NodeProto, needed: Set[str]) -> list[str]:
    """Take such states and rows out of a Loop and its body, what the steps compute of them left; how they are called.

    Parameters
    ----------
    needed : set of str
        The values that are needed where the Loop stands.
    """
    body = next(subgraphs(node), None)
    states = len(node.input) - _BEFORE_STATES
    if body is None or states <= 0 or len(body.input) != len(node.input):
        return []
    if min(len(node.output), len(body.output) - _BEFORE_RESULTS) < states:
        return []
    if len(node.output) > len(body.output) - _BEFORE_RESULTS:
        return []
    rows = [i for i in range(states, len(node.output)) if node.output[i] not in needed]
    for i in reversed(rows):
        del body.output[_BEFORE_RESULTS + i]
    left_out = [f"the rows {node.output.pop(i)!r} of Loop {node.name!r}" for i in reversed(rows)][::-1]
    kept = {i for i in range(states) if node.output[i] in needed}
    wanted = {value.name for i, value in enumerate(body.output) if not 0 <= i - _BEFORE_RESULTS < states}
    while True:
        found = wanted | {body.output[_BEFORE_RESULTS + i].name for i in kept}
        for inner in reversed(body.node):
            if not found.isdisjoint(inner.output):
                found.update(reads(inner))
        more = {i for i in range(states) if body.input[_BEFORE_STATES + i].name in found} - kept
        if not more:
            break
        kept |= more
    left = [i for i in reversed(range(states)) if i not in kept]
    for i in left:
        del node.input[_BEFORE_STATES + i], body.input[_BEFORE_STATES + i], body.output[_BEFORE_RESULTS + i]
    names = [f"the state {node.output.pop(i)!r} of Loop {node.name!r}" for i in left]
    return left_out + names[::-1]
