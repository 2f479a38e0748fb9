# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of arithmetic behind an Expand or ConstantOfShape.

The arithmetic is moved before it, and the sizes of the result are the largest of both operands: a size of 0, which only a run tells, becomes 1
where the other operand has 1, or has no such axis. `mends.broadcasts` does the same in OpenVINO's own graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from onnx import GraphProto, NodeProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.adapt.walked import inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_FLOAT, ANY_NUMBER, FLOATS, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of

#: The place of the shape that each broadcasts to.
_BROADCASTS = {"ConstantOfShape": 0, "Expand": 1}
#: What OpenVINO computes with a second operand, be it one of its own.
_ARITHMETIC = frozenset({"Add", "Clip", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Reciprocal", "Sub", "Sum"})
#: What may stand between, and is left out.
_PASSING = frozenset({"Cast", "Dropout", "Identity"})
_REASON = "OpenVINO would move the arithmetic behind it before it, and a size of 0 would become 1"


def broadcasts_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model with the larger of a value and itself, which is that value, behind these; None where there are none."""
    if not contents.has(_BROADCASTS) or not contents.has(_ARITHMETIC):
        return None
    flat = typed_of(contents.model).flat
    if (opset := opset_versions(flat).get("", 1)) < ANY_FLOAT:
        return None
    known = {name for graph in inner_first(flat.graph) for name in constants_of(graph)}
    found = [_moved(graph, known) for graph in inner_first(flat.graph)]
    if not any(found):
        return None
    if opset < ANY_NUMBER:
        types = walked_of(contents).types
        found = [_of_floats(graph, places, types) for graph, places in zip(inner_first(flat.graph), found, strict=True)]
    outputs = [dict.fromkeys(places, (0,)) for places in found]
    return outputs_apart(flat, outputs, f"{CAST}broadcast", "broadcasts_apart", _REASON)


def _moved(graph: GraphProto, known: Collection[str]) -> list[int]:
    """The places of what broadcasts to a shape that only a run tells, and is read by arithmetic."""
    reads = Counter(name for node in graph.node for name in node.input)  # what is read twice stays where it is
    computed = {name for node in graph.node if _is_any(node, _ARITHMETIC) for name in node.input}
    for node in reversed(graph.node):
        if _is_any(node, _PASSING) and node.output[0] in computed:
            computed.add(node.input[0])
    return [
        place
        for place, node in enumerate(graph.node)
        if _is_any(node, _BROADCASTS)
        and node.input[_BROADCASTS[node.op_type]] not in known
        and node.output[0] in computed
        and reads[node.output[0]] == 1
    ]


def _is_any(node: NodeProto, operators: Collection[str]) -> bool:
    return node.op_type in operators and not canonical(node.domain)


def _of_floats(graph: GraphProto, places: Collection[int], types: Mapping[str, TypeProto.Tensor]) -> list[int]:
    made = {place: types.get(graph.node[place].output[0]) for place in places}
    return [place for place, kind in made.items() if kind is not None and kind.elem_type in FLOATS]
