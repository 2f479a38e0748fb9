# SPDX-License-Identifier: Apache-2.0
"""Results of a body that are its inputs, or one value twice: engines write some of them once, late, or not at all.

ONNX Runtime (1.24 to 1.32) leaves memory unwritten where a Scan's body passes an input on, and where a Scan's body or a branch of an If names a value
twice; where a Loop collects the number of the iteration, each row is the last one, and where that is its next state, it is one too large. OpenVINO
(2025.4, 2026.4) gives states of a Loop that change places the same value, and may die of one that takes the place of another. An Identity before the
result is computed by both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import GraphProto, ModelProto, NodeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

#: The number of the iteration and the condition come before a Loop's states.
_BEFORE_STATES = 2
_PASS = "results_apart"
_REASON = "the engine would write it once, late, or not at all"

#: Whether the result of a body at a place is meant: of the node, the body and the place.
_IsMeant = Callable[[NodeProto, GraphProto, int], bool]


def results_apart(contents: Contents) -> Rewritten | None:
    """For ONNX Runtime: a copy in which results that it does not write come of an Identity; None where there are none."""
    return _rewritten(contents, ("If", "Loop", "Scan"), _is_unwritten)


def loop_states_apart(contents: Contents) -> Rewritten | None:
    """For OpenVINO: the same of a Loop's states that change places."""
    return _rewritten(contents, ("Loop",), _is_another_state)


def _rewritten(contents: Contents, operators: Sequence[str], is_meant: _IsMeant) -> Rewritten | None:
    def found(node: NodeProto) -> list[tuple[GraphProto, list[int]]]:
        if canonical(node.domain) or node.op_type not in operators:
            return []
        return [(body, _places(node, body, is_meant)) for body in subgraphs(node)]

    if not any(places for node in contents.of(*operators) for _, places in found(node)):
        return None
    if expands_too_far(contents.model):
        return None
    copy = ModelProto()
    copy.CopyFrom(inlined(contents.model))
    taken, changes, added = names_taken(copy), list[Adaptation](), set[str]()
    for node in (node for graph in inner_first(copy.graph) for node in graph.node):
        for body, places in found(node):
            for place in places:
                result = body.output[place]
                name = unused(f"{result.name}{CAST}result", taken)
                body.node.append(helper.make_node("Identity", [result.name], [name], name=name))
                added.add(name)
                where = f"{node.op_type} {node.name or next(iter(node.output), '')!r}"
                changes.append(Adaptation(_PASS, where, f"its result {result.name!r} comes of an Identity", _REASON))
                result.name = name
    return Rewritten(copy, tuple(changes), frozenset(added))


def _places(node: NodeProto, body: GraphProto, is_meant: _IsMeant) -> list[int]:
    """The places of such results of a body; Identity takes tensors alone in older opsets."""
    kinds = [result.type.WhichOneof("value") for result in body.output]
    tensors = (place for place, kind in enumerate(kinds) if kind in (None, "tensor_type"))
    return [place for place in tensors if is_meant(node, body, place)]


def _is_unwritten(node: NodeProto, body: GraphProto, place: int) -> bool:
    name = body.output[place].name
    if node.op_type == "Loop":
        return _is_told(body, place)
    if node.op_type == "Scan" and any(value.name == name for value in body.input):
        return True
    return any(before.name == name for before in body.output[:place])


def _is_another_state(node: NodeProto, body: GraphProto, place: int) -> bool:
    states = [value.name for value in body.input[_BEFORE_STATES:]]
    if not 0 < place <= len(states):
        return False
    name = body.output[place].name
    return _is_told(body, place) or (name in states and (name != states[place - 1] or not body.node))


def _is_told(body: GraphProto, place: int) -> bool:
    """Whether a state or a row of a Loop's body is the number of the iteration, or the condition."""
    return place > 0 and any(value.name == body.output[place].name for value in body.input[:_BEFORE_STATES])
