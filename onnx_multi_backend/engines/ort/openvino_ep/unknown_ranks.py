# SPDX-License-Identifier: Apache-2.0
"""Nodes that read a tensor of unknown rank, left to the CPU provider: OpenVINO has no tensors of unknown rank.

Its built-in provider (1.24.1) takes such nodes all the same in a model of four nodes or more, and fails to compile them.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.engines.ort.openvino_ep.left_nodes import with_nodes_left
from onnx_multi_backend.engines.session import Payload

#: What gives values of unknown rank of inputs that have one. (An If may too; there it takes seconds to find that it does not help.)
_LOSE_RANKS = frozenset({"Loop"})

_REASON = "the OpenVINO execution provider takes nodes that read a tensor of unknown rank, and fails to compile them"


def left_of_unknown_rank(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with these nodes left; nothing is changed where the type of what one makes is not known, or no rank is lost."""
    given = any(_has_no_rank(value.type) for value in payload.adapted.proto.graph.input)
    if not given and not payload.adapted.facts.contents.has(_LOSE_RANKS):
        return payload, ()
    return with_nodes_left(payload, _of_unknown_rank, "nodes that read a tensor of unknown rank", _REASON)


def _of_unknown_rank(model: ModelProto, types: Mapping[str, TypeProto]) -> list[int]:
    return [i for i, node in enumerate(model.graph.node) if any(_has_no_rank(types.get(name)) for name in reads(node))]


def _has_no_rank(kind: TypeProto | None) -> bool:
    return kind is not None and kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape")
