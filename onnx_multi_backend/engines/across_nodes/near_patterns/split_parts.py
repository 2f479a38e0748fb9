# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of the parts of a Split that are put together again.

Of parts that each stand several times it makes a Resize along the Split's axis, along whichever axis they are put together. Where they lose the axis
before, and are put together along an axis that counts from the end, the process ends. The larger of a value and itself, which is that value, is put
in the place of the first part.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, of_kept_types, passed_from
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_LOSING_AXES = frozenset({"Identity", "Reshape", "Squeeze"})
_REASON = "OpenVINO would make one operator of the Split and what puts its parts together, along another axis"


def parts_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which the first of such parts is kept apart; None where there are none."""
    if not contents.has({"Concat"}) or not contents.has({"Split"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    read = [_found(nodes, walked) for nodes in walked.views]
    found = of_kept_types(contents, flat, read) if any(read) else []
    return inputs_apart(flat, found, f"{CAST}part", "parts_apart", "kept apart from the Split", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked) -> dict[int, str]:
    """The places of such Concats, with what they read first."""

    def is_met(node: NodeView) -> bool:
        if node.operator != "Concat" or not node.input:
            return False
        before = passed_from(node.input[0], walked.makers, _LOSING_AXES)
        split = walked.makers.get(before)
        if split is None or split.op_type != "Split":
            return False
        axis = next((a.i for a in node.proto.attribute if a.name == "axis"), 1)
        if before != node.input[0]:
            return axis < 0
        return len(set(node.input)) < len(node.input) and axis != next(
            (a.i for a in split.attribute if a.name == "axis"), 0
        )

    return {place: node.input[0] for place, node in enumerate(nodes) if is_met(node)}
