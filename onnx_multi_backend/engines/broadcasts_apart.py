# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of arithmetic behind an Expand or ConstantOfShape.

The arithmetic is moved before it, and the sizes of the result are the largest of both operands: a size of 0, which only a run tells, becomes 1
where the other operand has 1, or has no such axis. `mends.broadcasts` does the same in OpenVINO's own graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.apart import inner_first, kept_apart, names_taken
from onnx_multi_backend.engines.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of, put_back
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

#: The place of the shape that each broadcasts to.
_BROADCASTS = {"ConstantOfShape": 0, "Expand": 1}
_ARITHMETIC = frozenset({"Add", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum"})
#: Since this opset Max takes all numbers.
_ANY_NUMBER = 12
_REASON = "OpenVINO would move the arithmetic behind it before it, and a size of 0 would become 1"


def broadcasts_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model with the larger of a value and itself, which is that value, behind these; None where there are none."""
    if not contents.has(_BROADCASTS) or not contents.has(_ARITHMETIC) or expands_too_far(contents.model):
        return None
    flat = inlined(contents.model)
    if opset_versions(flat).get("", 1) < _ANY_NUMBER:
        return None
    known = {name for graph in inner_first(flat.graph) for name in constants_of(graph)}
    found = [_moved(graph, known) for graph in inner_first(flat.graph)]
    if not any(found):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    taken, added = names_taken(flat), dict[str, str]()
    for graph, places in zip(inner_first(copy.graph), found, strict=True):
        if places:
            _keep_apart(graph, places, taken, added)
    changes = (
        Adaptation("broadcasts_apart", where, "kept apart from what reads it", _REASON) for where in added.values()
    )
    return Rewritten(copy, tuple(changes), frozenset(added))


def _moved(graph: GraphProto, known: Collection[str]) -> list[int]:
    """The places of what broadcasts to a shape that only a run tells, and has arithmetic for its only reader."""
    reads = Counter(name for node in graph.node for name in node.input)
    by_arithmetic = {name for node in graph.node if node.op_type in _ARITHMETIC for name in node.input}
    return [
        place
        for place, node in enumerate(graph.node)
        if node.op_type in _BROADCASTS
        and not canonical(node.domain)
        and node.input[_BROADCASTS[node.op_type]] not in known
        and node.output[0] in by_arithmetic
        and reads[node.output[0]] == 1
    ]


def _keep_apart(graph: GraphProto, places: Collection[int], taken: set[str], added: dict[str, str]) -> None:
    nodes: list[NodeProto] = []
    for place, node in enumerate(graph.node):
        nodes.append(node)
        if place in places:
            where = f"{node.op_type} {node.name or node.output[0]!r}"
            nodes.append(kept_apart(node, 0, f"{CAST}broadcast", taken))
            added[nodes[-1].name] = where
    put_back(graph, nodes)
