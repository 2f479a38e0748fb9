# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Max or Min of small integers whose first two operands are constants.

It makes a layer for each two operands. That of the constants runs once, before the first run, and the next one writes its result over it, in each run
once more. An operand that only a run tells goes first. (Of OpenVINO itself, such layers are computed while the model is loaded: `constant_paths`.)
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_EXTREMES = frozenset({"Max", "Min"})
#: Wider ones are folded.
_SMALL = frozenset({TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16})
_PASS, _CHANGE = "run_first", "given an operand of the run first"
_REASON = "OpenVINO would write the extreme over that of its constants, in each run once more"


def run_first(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these have an operand of the run first; None where there are none."""
    if not contents.has(_EXTREMES) or contents.tensor_types.isdisjoint(_SMALL) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    places = [dict(_found(nodes, walked)) for nodes in walked.views]
    if not any(places):
        return None
    changes: list[Adaptation] = []

    def write(node: NodeProto, first: int, kept: dict[str, str]) -> Iterator[NodeProto]:
        changes.append(Adaptation(_PASS, f"{node.op_type} {node.name or node.output[0]!r}", _CHANGE, _REASON))
        read = node.input[:]
        del node.input[:]
        node.input.extend([read[first], *read[:first], *read[first + 1 :]])
        yield node

    return written(flat, places, write, changes)


def _found(nodes: list[NodeView], walked: Walked) -> Iterator[tuple[int, int]]:
    """The places of such nodes, and of the first operand that a run tells."""
    for place, node in enumerate(nodes):
        if (
            node.operator not in _EXTREMES
            or len(node.input) < 3
            or not all(map(walked.fixed.__contains__, node.input[:2]))
        ):
            continue
        tensors = [tensor for name in node.input if (tensor := walked.fixed.get(name)) is not None and tensor.data_type]
        others = [i for i, name in enumerate(node.input) if name not in walked.fixed]
        if others and any(tensor.data_type in _SMALL for tensor in tensors):
            yield place, others[0]
