# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2026.4) makes of a GatherElements behind a Slice: it leaves the Slice out, from whose end negative indices count.

The larger of a value and itself, which is that value, keeps both. Indices that are known not to be negative need nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import LEFT_OUT, flat_for, inputs_apart, is_made_by, of_kept_types
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would leave the Slice out, and count negative indices from another end"


def elements_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from the Slice; None where there are none."""
    if not contents.has({"GatherElements"}) or not contents.has({"Slice"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = of_kept_types(contents, flat, [_found(nodes, walked) for nodes in walked.views])
    return inputs_apart(flat, found, f"{CAST}sliced", "elements_apart", "kept apart from the Slice before it", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked) -> dict[int, str]:
    """The places of these, with what they read."""

    def is_met(node: NodeView) -> bool:
        if node.operator != "GatherElements" or not is_made_by(node.input[0], "Slice", walked.makers, LEFT_OUT):
            return False
        indices = walked.array(node.input[1])
        return indices is None or bool((indices < 0).any())

    return {place: node.input[0] for place, node in enumerate(nodes) if is_met(node)}
