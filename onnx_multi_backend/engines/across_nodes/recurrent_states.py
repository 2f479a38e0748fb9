# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of the last state of a recurrent layer that goes one way.

Arithmetic with a constant behind it is moved before the change of its axes: the result has another shape, (1, 1, 1, 5) or (1, 5, 1) where
(1, 1, 5) should be, or is written beyond its memory.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.across_nodes.apart import outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies, canonical, names_read
from onnx_multi_backend.models.inlining import inlined

_REASON = "OpenVINO would move arithmetic with a constant before the change of its axes"


def states_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model with the larger of a value and itself, which is that value, behind these states; None where nothing reads one."""
    if not contents.has(LAYERS):
        return None
    flat = inlined(contents.model)
    states = [_of_graph(graph) for graph in inner_first(flat.graph)]
    return outputs_apart(flat, states, f"{CAST}state", "states_apart", _REASON)


def _read(graph: GraphProto) -> set[str]:
    """What nodes of a graph read, in their subgraphs too."""
    inside = (name for node in graph.node for inner in bodies(node) for name in names_read(inner))
    return {*(name for node in graph.node for name in node.input), *inside}


def _states(node: NodeProto, read: set[str]) -> list[int]:
    """The places of the last states that are read, of a layer that goes one way."""
    if node.op_type not in LAYERS or canonical(node.domain):
        return []
    if any(a.name == "direction" and a.s == b"bidirectional" for a in node.attribute):
        return []
    return [place for place, name in enumerate(node.output) if place and name in read]


def _of_graph(graph: GraphProto) -> dict[int, list[int]]:
    """These states by the place of their layer."""
    if not any(node.op_type in LAYERS for node in graph.node):
        return {}
    read = _read(graph)
    found = ((place, _states(node, read)) for place, node in enumerate(graph.node))
    return {place: states for place, states in found if states}
