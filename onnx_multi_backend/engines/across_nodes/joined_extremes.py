# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2025.4 makes of the largest or smallest element of two tensors that are concatenated.

It takes the larger of both, element by element, for it, which leaves as many as one of them has along the axis. With the larger of a value and
itself before the reduction, which is that value, it does not.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, of_kept_types
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_EXTREMES = frozenset({"ReduceMax", "ReduceMin"})
_JOINED = 2
_REASON = "OpenVINO would take the larger of the two that are concatenated, element by element"


def joined_extremes(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart; None where there are none."""
    if not contents.has({"Concat"}) or not contents.has(_EXTREMES):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs, makers = walked.graphs, walked.makers
    found = [_found(graph, makers) for graph in graphs]
    if not any(found):
        return None
    places = of_kept_types(contents, flat, found)
    change = "kept apart from what it reads"
    return inputs_apart(flat, places, f"{CAST}joined", "joined_extremes", change, _REASON)


def _found(graph: GraphProto, makers: Mapping[str, NodeProto]) -> dict[int, str]:
    """The places of reductions of two tensors that are concatenated, and of one operator on them or more, with what they read."""
    found = {}
    for place, node in enumerate(graph.node):
        if node.op_type not in _EXTREMES or canonical(node.domain):
            continue
        name = node.input[0]
        while (maker := makers.get(name)) is not None and len(maker.input) == 1 and maker.op_type != "Concat":
            name = maker.input[0]
        if maker is not None and maker.op_type == "Concat" and len(maker.input) == _JOINED:
            found[place] = node.input[0]
    return found
