# SPDX-License-Identifier: Apache-2.0
"""Nodes that a refusal names, left to the CPU provider.

OpenVINO's built-in provider (1.24.1) leaves a TopK whose k is of unknown length, or a LayerNormalization of which three results are read, in
a short model or beside a node that it leaves. In other models it takes them, and fails to compile them.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.ort.left_nodes import with_nodes_left
from onnx_multi_backend.engines.session import Payload

#: How many forms are left, one after the other: the model is compiled again for each.
_MOST = 8
_REASON = "the OpenVINO execution provider takes these nodes, and fails to compile them"


def left_as_named(payload: Payload, words: str) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the node left that a refusal names, and with it all of that operator that have as many results and the same attributes."""

    def of_that_form(model: ModelProto, types: Mapping[str, TypeProto]) -> list[int]:
        forms = [_form(node) for node in model.graph.node if _is_named(node, words)]
        return [i for i, node in enumerate(model.graph.node) if _form(node) in forms]

    before = sum(change.reason == _REASON for change in payload.adapted.changes)
    if "<Node(" not in words or before >= _MOST:
        return payload, ()
    return with_nodes_left(payload, of_that_form, "nodes that it names", _REASON)


def _is_named(node: NodeProto, words: str) -> bool:
    """Whether OpenVINO's frontend names this node: by its name, or where it has none by its results."""
    said = node.name or ", ".join(node.output)
    return f"<Node({node.op_type}): {said}>" in words


def _form(node: NodeProto) -> tuple[str, str, int, int, list[bytes]]:
    attributes = sorted(a.SerializeToString() for a in node.attribute)
    return node.domain, node.op_type, len(node.input), sum(map(bool, node.output)), attributes
