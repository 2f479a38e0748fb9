# SPDX-License-Identifier: Apache-2.0
"""Nodes that no result needs: engines leave them out, so that a model must not be refused for one."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt.single_node import needed_in
from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.models.graph_walk import operator_name, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far


def without_unneeded(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model without them; the model itself where there are none."""
    if expands_too_far(model):
        return model, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    left_out: list[NodeProto] = []
    _leave_out(copy.graph, left_out)
    if not left_out:
        return model, ()
    reason = "no result of the model needs it"
    return copy, tuple(
        Adaptation(
            "unneeded_nodes", f"{operator_name(node)} {node.name or next(iter(node.output), '')!r}", "left out", reason
        )
        for node in left_out
    )


def _leave_out(graph: GraphProto, left_out: list[NodeProto]) -> None:
    for node in graph.node:
        for inner in subgraphs(node):
            _leave_out(inner, left_out)
    needed = needed_in(graph)
    kept: list[NodeProto] = []
    for node in graph.node:
        copy = NodeProto.FromString(node.SerializeToString())
        (left_out if needed.isdisjoint(node.output) else kept).append(copy)
    if len(kept) < len(graph.node):
        del graph.node[:]
        graph.node.extend(kept)
