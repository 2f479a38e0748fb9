# SPDX-License-Identifier: Apache-2.0
"""Ifs whose condition is known before anything runs: the branch that runs takes their place, and what the other one holds is not needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import GraphProto, NodeProto, helper

from onnx_multi_backend.adapt.intervals.ranges import ranges
from onnx_multi_backend.adapt.intervals.truths import FALSE, TRUE
from onnx_multi_backend.adapt.intervals.values import BOOL
from onnx_multi_backend.adapt.operation import Values
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.models.graph_walk import canonical, operator_name, put_back

_MARK = "/omb_branch/"
_BRANCHES = {TRUE: "then_branch", FALSE: "else_branch"}


def choose_branches(graph: GraphProto) -> list[str]:
    """Put the branches that run into the graph; how the Ifs are called."""
    chosen: list[str] = []
    while any(_is_if(node) for node in graph.node):
        values = ranges(graph)
        nodes: list[NodeProto] = []
        count = len(chosen)
        for node in graph.node:
            branch = _branch_that_runs(node, values) if _is_if(node) else None
            if branch is None:
                nodes.append(node)
            else:
                nodes += _inlined(node, branch, graph)
                chosen.append(f"{operator_name(node)} {node.name or node.output[0]!r}")
        if len(chosen) == count:
            break
        put_back(graph, nodes)
    return chosen


def _is_if(node: NodeProto) -> bool:
    return node.op_type == "If" and not canonical(node.domain) and len(node.input) == 1


def _branch_that_runs(node: NodeProto, values: Values) -> GraphProto | None:
    """It; None where that is not known, or it holds what a node cannot."""
    name = _BRANCHES.get(values.get(node.input[0], BOOL))
    found = next((a.g for a in node.attribute if a.name == name), None)
    return found if found is not None and not found.sparse_initializer else None


def _inlined(node: NodeProto, branch: GraphProto, graph: GraphProto) -> Sequence[NodeProto]:
    prefix = (node.name or node.output[0]) + _MARK
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
