# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Pad before a SpaceToDepth: a SpaceToBatch, of what is nearly one too.

Batch and channels change places before and behind it, which OpenVINO tells by the sizes alone; pads of batch and channels are lost. The larger of a
value and itself, which is that value, is put between them unless it is a SpaceToBatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import LEFT_OUT, flat_for, inputs_apart, maker_before, of_kept_types
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_EXCHANGED = [1, 0, 2, 3]
_REASON = "OpenVINO would make a SpaceToBatch of both"


def spaces_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from the Pad; None where there are none."""
    if not contents.has({"SpaceToDepth"}) or not contents.has({"Pad"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = zip(walked.views, walked.readers, strict=True)
    found = of_kept_types(contents, flat, [_found(nodes, walked, readers) for nodes, readers in graphs])
    return inputs_apart(flat, found, f"{CAST}padded", "spaces_apart", "kept apart from the Pad before it", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked, readers: Mapping[str, Sequence[NodeProto]]) -> dict[int, str]:
    """The places of these, with what they read."""

    def is_met(node: NodeView) -> bool:
        pad = maker_before(node.input[0], walked.makers, LEFT_OUT) if node.operator == "SpaceToDepth" else None
        if pad is None or pad.op_type != "Pad":
            return False
        before = maker_before(pad.input[0], walked.makers, LEFT_OUT)
        behind = readers.get(node.output[0], ())
        exchanged = before is not None and _exchanges(before) and all(map(_exchanges, behind))
        return not exchanged or _pads_batch_or_channels(pad, walked)

    return {place: node.input[0] for place, node in enumerate(nodes) if is_met(node)}


def _exchanges(node: NodeProto) -> bool:
    return node.op_type == "Transpose" and any(a.name == "perm" and list(a.ints) == _EXCHANGED for a in node.attribute)


def _pads_batch_or_channels(pad: NodeProto, walked: Walked) -> bool:
    pads = next((list(a.ints) for a in pad.attribute if a.name == "pads"), None)
    if pads is None and len(pad.input) > 1 and (held := walked.array(pad.input[1])) is not None:
        pads = held.tolist()
    if pads is None or len(pads) != 2 * len(_EXCHANGED) or (len(pad.input) > 3 and pad.input[3]):
        return True
    return any(pads[:2]) or any(pads[4:6])
