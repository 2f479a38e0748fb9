# SPDX-License-Identifier: Apache-2.0
"""Around OpenVINO's low-precision transformations (2025.4, 2026.4), which leave out a Cast to 8 bits and the one back before a QuantizeLinear.

Nothing is truncated then. They stay with the larger of a value and itself behind them, which is that value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import FLOATS, flat_for, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.written_norms import PASSED_OVER
from onnx_multi_backend.models.contents import Contents

_EIGHT = frozenset({TensorProto.INT8, TensorProto.UINT8})
_REASON = "OpenVINO would leave out both casts before a QuantizeLinear"


def casts_kept(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such casts truncate; None where there are none."""
    if not contents.has({"Cast"}) or not contents.has({"QuantizeLinear"}) or (flat := flat_for(contents)) is None:
        return None
    found = [dict(_found(nodes)) for nodes in walked_of(contents).views]
    return outputs_apart(flat, found, f"{CAST}truncated", "casts_kept", _REASON)


def _found(nodes: Sequence[NodeView]) -> Iterator[tuple[int, list[int]]]:
    """The places of casts from 8 bits that another Cast makes to floating point, with the place of their output."""
    truncated = set()
    for place, node in enumerate(nodes):
        if node.operator in PASSED_OVER and node.input[0] in truncated:
            truncated.add(node.output[0])
        elif node.operator == "Cast":
            if _kind(node.proto) in _EIGHT:
                truncated.add(node.output[0])
            elif node.input[0] in truncated and _kind(node.proto) in FLOATS:
                yield place, [0]


def _kind(node: NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "to"), TensorProto.UNDEFINED)
