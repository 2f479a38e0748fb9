# SPDX-License-Identifier: Apache-2.0
"""Around Max, Min and Sum of one input, and an Einsum that changes nothing, from an input of the model, or of a Scan's body, to an output.

OpenVINO's built-in provider leaves the output unwritten.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import all_nodes, canonical

_OF_ANY_NUMBER = frozenset({"Max", "Min", "Sum"})


def operands_doubled(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the larger of a value and itself, which is that value, in place of each such node."""
    if not any(map(_is_lone, payload.adapted.facts.contents.nodes)):
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    count = 0
    for node in filter(_is_lone, all_nodes(copy)):
        node.op_type = "Max"
        del node.attribute[:]
        node.input.append(node.input[0])
        count += 1
    change = Adaptation(
        "operands_doubled",
        "",
        f"the larger of a value and itself, in place of Max, Min, Sum and Einsum of one input ({count})",
        "the OpenVINO execution provider leaves the output of such a node unwritten where it passes an input on",
    )
    return payload.changed(copy, change), (change,)


def _is_lone(node: NodeProto) -> bool:
    if len(node.input) != 1 or canonical(node.domain):
        return False
    return node.op_type in _OF_ANY_NUMBER or (node.op_type == "Einsum" and _changes_nothing(node))


def _changes_nothing(node: NodeProto) -> bool:
    """Whether an Einsum names the axes of its input, each once, in their order."""
    equation = next((a.s for a in node.attribute if a.name == "equation"), b"").replace(b" ", b"")
    given, arrow, made = equation.partition(b"->")
    made = made if arrow else bytes(sorted(given))
    return given == made and len({*given}) == len(given)
