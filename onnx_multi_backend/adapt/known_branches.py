# SPDX-License-Identifier: Apache-2.0
"""Ifs whose condition is known before anything runs: the branch that runs takes their place, and what the other one holds is not needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.known_numbers import Number, known_numbers
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.adapt.unused_names import unused
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, operator_name, put_back

_MARK = "/omb_branch"
_KNOWN = "/omb_steps"
#: The inputs of a Loop that tell how many steps it makes.
_STEPS = 2


def choose_branches(graph: GraphProto) -> list[str]:
    """Put the branches that run into the graph; how the Ifs are called."""
    chosen: list[str] = []
    while any(_is(node, "If") for node in graph.node):
        known = known_numbers(graph)
        nodes: list[NodeProto] = []
        count = len(chosen)
        for node in graph.node:
            branch = _branch_that_runs(node, known) if _is(node, "If") else None
            if branch is None:
                nodes.append(node)
            else:
                nodes += _inlined(node, branch, graph, f"{_MARK}{len(chosen)}/")
                chosen.append(f"{operator_name(node)} {node.name or next(filter(None, node.output), '')!r}")
        if len(chosen) == count:
            break
        put_back(graph, nodes)
    return chosen


def has_computed_steps(facts: Facts) -> bool:
    """Whether constants tell of a loop how many steps it makes, or whether it makes any, once they are computed."""
    loops = facts.contents.of("Loop")
    return any(not facts.computed_of_constants.isdisjoint(node.input[:_STEPS]) for node in loops)


def tell_steps(graph: GraphProto) -> None:
    """Give loops the trip counts and first conditions that are computed of constants as constants."""
    loops = [node for node in graph.node if _is(node, "Loop")]
    known = known_numbers(graph) if loops else {}
    constants = {tensor.name for tensor in graph.initializer}
    taken = {name for node in nodes_in(graph.node) for name in (*node.input, *node.output)} if known else set()
    for node in loops:
        for place, name in enumerate(node.input[:_STEPS]):
            if name not in known or name in constants:
                continue
            told = unused(name + _KNOWN, taken)
            kind = np.int64 if place == 0 else np.bool_
            graph.initializer.append(numpy_helper.from_array(np.array(known[name], kind), told))
            node.input[place] = told


def _is(node: NodeProto, operator: str) -> bool:
    return node.op_type == operator and not canonical(node.domain) and bool(node.input)


def _branch_that_runs(node: NodeProto, known: Mapping[str, Number]) -> GraphProto | None:
    """It; None where that is not known, or it holds what a node cannot."""
    condition = known.get(node.input[0])
    if not isinstance(condition, bool):
        return None
    name = "then_branch" if condition else "else_branch"
    found = next((a.g for a in node.attribute if a.name == name), None)
    return found if found is not None and not found.sparse_initializer else None


def _inlined(node: NodeProto, branch: GraphProto, graph: GraphProto, mark: str) -> Sequence[NodeProto]:
    prefix = next(filter(None, node.output), "") + mark
    own = {name for inner in branch.node for name in inner.output} | {tensor.name for tensor in branch.initializer}

    def name_of(name: str) -> str:
        return prefix + name if name in own else name

    def made() -> Iterator[NodeProto]:
        for tensor in branch.initializer:
            held = graph.initializer.add()
            held.CopyFrom(tensor)
            held.name = name_of(tensor.name)
        for inner in branch.node:
            yield renamed(inner, name_of)
        for value, output in zip(branch.output, node.output, strict=False):
            if output:
                yield helper.make_node("Identity", [name_of(value.name)], [output])

    return list(made())
