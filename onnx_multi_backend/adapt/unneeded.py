# SPDX-License-Identifier: Apache-2.0
"""Nodes, constants and branches that no result needs: engines leave them out, so that a model must not be refused for one."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt.known_branches import choose_branches, tell_steps
from onnx_multi_backend.adapt.single_node import needed_in
from onnx_multi_backend.adapt.unneeded_states import leave_states_out
from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.models.graph_walk import canonical, operator_name, put_back, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far


def without_unneeded(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model without them; the model itself where there are none."""
    if expands_too_far(model):
        return model, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    left_out: list[str] = []
    chosen = choose_branches(copy.graph)
    tell_steps(copy.graph)
    _leave_out(copy.graph, left_out)
    if not left_out and not chosen:
        return model, ()
    reason = "its condition is known, and the other branch never runs"
    changes = [Adaptation("known_branches", what, "its branch takes its place", reason) for what in chosen]
    reason = "no result of the model needs it"
    return copy, (*changes, *(Adaptation("unneeded_nodes", what, "left out", reason) for what in left_out))


def computes_unneeded(node: NodeProto) -> bool:
    """Whether nodes in a node's bodies compute what no result of these needs."""
    for graph in subgraphs(node):
        needed = needed_in(graph)
        if any(needed.isdisjoint(inner.output) or computes_unneeded(inner) for inner in graph.node):
            return True
    return False


def _leave_out(graph: GraphProto, left_out: list[str]) -> None:
    """Leave out what is not needed, in the bodies first: they may be what reads a value."""
    needed = needed_in(graph)
    for node in graph.node:
        if node.op_type == "Loop" and not canonical(node.domain):
            left_out += leave_states_out(node, needed)
        for inner in subgraphs(node):
            _leave_out(inner, left_out)
    needed = needed_in(graph)
    if any(needed.isdisjoint(node.output) for node in graph.node):
        kept: list[NodeProto] = []
        for node in graph.node:
            if needed.isdisjoint(node.output):
                left_out.append(f"{operator_name(node)} {node.name or next(iter(node.output), '')!r}")
            else:
                kept.append(node)
        put_back(graph, kept)
    given = {value.name for value in graph.input}  # an initializer of its name is a default
    for place, tensor in reversed(list(enumerate(graph.initializer))):
        if tensor.name not in needed and tensor.name not in given:
            left_out.append(f"the constant {tensor.name!r}")
            del graph.initializer[place]
