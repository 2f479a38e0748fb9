# SPDX-License-Identifier: Apache-2.0
"""Nodes that a refusal names, left to the CPU provider.

OpenVINO's built-in provider (1.24.1) leaves a TopK whose k is of unknown length, or a LayerNormalization of which three results are read, in
a short model or beside a node that it leaves. In other models it takes them, and fails to compile them. Of an input that a Dropout or an
Identity passes on to an output, it does not find the name: the node is left. So is an If or a loop in which there are operators that
OpenVINO lacks, and what OpenVINO's CPU plugin has no kernel for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.ort.openvino_ep.left_nodes import with_nodes_left
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import nodes_in

#: How many forms are left, one after the other: the model is compiled again for each.
_MOST = 8
_LOST = re.compile(r"(\S+) doesn't exist in the list of OpenVINO input tensor names")
_LACKING = re.compile(r"does not support the following ONNX operations: ([\w., -]+)")
#: What OpenVINO says of a layer, which has the node's name or that of its result, and maybe the result's place.
_UNCOMPILED = re.compile(
    r"list is empty for node: (\S+?)(?:\.\d+)? type: "
    r"|operation with dynamic rank\. Operation name: (\S+)"
    r"|While validating node .* with friendly_name '(\S+?)(?:\.\d+)?':"
)
_PASSES = frozenset({"Dropout", "Identity"})
_REASON = "the OpenVINO execution provider takes these nodes, and fails to compile them"


def left_as_named(payload: Payload, words: str) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the node left that a refusal names, and with it all of that operator that have as many results and the same attributes."""
    lost, lacking = _LOST.search(words), _LACKING.search(words)
    lacked = frozenset(lacking[1].split(", ")) if lacking else frozenset()
    uncompiled = _UNCOMPILED.search(words)

    def of_that_form(model: ModelProto, types: Mapping[str, TypeProto]) -> list[int]:
        nodes = list(enumerate(model.graph.node))
        if lost is not None:
            return [i for i, node in nodes if node.op_type in _PASSES and node.input[0] == lost[1]]
        if lacked:
            return [i for i, node in nodes if any(n.op_type in lacked for n in nodes_in([node]) if n is not node)]
        forms = [_form(node) for _, node in nodes if _is_named(node, words)]
        if not forms and uncompiled is not None:
            name = next(filter(None, uncompiled.groups()))
            forms = [_form(node) for _, node in nodes if name in (node.name, *node.output)]
        return [i for i, node in nodes if _form(node) in forms]

    before = sum(change.reason == _REASON for change in payload.adapted.changes)
    if not (lost or lacked or uncompiled or "<Node(" in words) or before >= _MOST:
        return payload, ()
    return with_nodes_left(payload, of_that_form, "nodes that it names", _REASON)


def _is_named(node: NodeProto, words: str) -> bool:
    """Whether OpenVINO's frontend names this node: by its name, or where it has none by its results."""
    said = node.name or ", ".join(node.output)
    return f"<Node({node.op_type}): {said}>" in words


def _form(node: NodeProto) -> tuple[str, str, int, int, list[bytes]]:
    attributes = sorted(a.SerializeToString() for a in node.attribute)
    return node.domain, node.op_type, len(node.input), sum(map(bool, node.output)), attributes
