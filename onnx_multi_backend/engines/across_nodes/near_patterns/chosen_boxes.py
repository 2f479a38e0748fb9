# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of indices that a NonMaxSuppression chooses: they are unsigned, and with them others beside them.

A negative index that is put together with them, or chosen by them from a table, counts from the end for ONNX, and is beyond all rows then. What is
unsigned does not go beyond the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, kept_types
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_CHOOSING = "NonMaxSuppression"
#: What moves indices: of all its inputs, or of the first alone.
_OF_ALL = frozenset({"Concat", "Gather"})
_OF_FIRST = frozenset(
    {"Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)
_REASON = "OpenVINO would take negative indices for unsigned ones"


def indices_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such indices are kept apart; None where there are none."""
    if not contents.has({_CHOOSING}) or not contents.has({"Gather"}) or (flat := flat_for(contents)) is None:
        return None
    if kept_types(opset_versions(flat).get("", 1)) is not None:  # Max takes no integers yet
        return None
    walked = walked_of(contents)
    found = [
        {place: 1 for place, node in enumerate(nodes) if node.operator == "Gather" and _is_mixed(node.input[1], walked)}
        for nodes in walked.views
    ]
    return inputs_apart(
        flat, found, f"{CAST}indices", "indices_apart", "kept apart from the boxes that are chosen", _REASON
    )


def _is_mixed(indices: str, walked: Walked) -> bool:
    """Whether indices are moved from chosen boxes and from something else that may be negative."""
    waiting, seen, chosen, others = [indices], set[str](), False, False
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        maker = walked.makers.get(name)
        if maker is not None and maker.op_type == _CHOOSING:
            chosen = True
        elif maker is not None and maker.op_type in _OF_ALL | _OF_FIRST:
            waiting += maker.input if maker.op_type in _OF_ALL else maker.input[:1]
        elif (held := walked.array(name)) is None or bool((held < 0).any()):
            others = True
    return chosen and others
