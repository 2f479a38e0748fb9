# SPDX-License-Identifier: Apache-2.0
"""Nodes with graphs in which a node is left to the CPU provider, on OpenVINO's built-in provider (1.24.1).

It looks at no node in the branches of an If, or in the body of a Loop, that it takes. So these are left as well: see `left_to_cpu`. A Scan it never
takes.
"""

from __future__ import annotations

from onnx import NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import LEFT
from onnx_multi_backend.engines.ort.openvino_ep.texts import with_texts
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import nodes_in

_TAKEN = frozenset({"If", "Loop"})
_REASON = "the OpenVINO execution provider takes all that is in a node, what is left to the CPU included"


def left_around(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the Ifs and Loops left that hold a node to be left."""
    contents = payload.adapted.facts.contents
    if not contents.has(_TAKEN) or not any(map(_is_left, contents.nodes)):
        return payload, ()
    if not any(map(_is_left_within, contents.of(*_TAKEN))):
        return payload, ()
    return with_texts(payload, payload.adapted.proto, _is_left_within, "", _REASON)


def _is_left(node: NodeProto) -> bool:
    return LEFT in str(node.name)


def _is_left_within(node: NodeProto) -> bool:
    """Whether a node is taken though one in it is to be left."""
    return node.op_type in _TAKEN and not _is_left(node) and any(map(_is_left, nodes_in([node])))
