# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of an LSTM between two ReverseSequences: one that goes backward, of sequences that are all as long.

Of sizes that are open it forgets lengths that a run brings. The LSTM reads the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, maker_before
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_PASSING = ("Cast", "Identity", "Squeeze", "Transpose", "Unsqueeze")
_REASON = "OpenVINO would have it go backward, and forget the lengths of sequences"


def reversals_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which the layer is kept apart from the first ReverseSequence; None where there are none."""
    if not contents.has({"ReverseSequence"}) or not contents.has({"LSTM"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict.fromkeys(_found(nodes, walked), 0) for nodes in walked.views]
    return inputs_apart(
        flat, found, f"{CAST}reversed", "reversals_apart", "kept apart from what reverses its sequence", _REASON
    )


def _found(nodes: Sequence[NodeView], walked: Walked) -> list[int]:
    """The places of such layers."""

    def is_met(node: NodeView) -> bool:
        maker = maker_before(node.input[0], walked.makers, _PASSING) if node.operator == "LSTM" else None
        return maker is not None and maker.op_type == "ReverseSequence" and maker.input[1] not in walked.stored

    return [place for place, node in enumerate(nodes) if is_met(node)]
