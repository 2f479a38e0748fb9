# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Transpose before a reduction that drops axes, where one of those left has one element.

It moves the Transpose behind the reduction, where it becomes a Reshape, which is left out: (1, 4) for (4, 1). It is not left out before the
larger of a value and itself, which is that value. Of open sizes it is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.size import Sizes
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import LEFT_OUT, flat_for, is_made_by, of_kept_types, outputs_apart
from onnx_multi_backend.engines.across_nodes.reduced_axes import drops_axes
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would move the Transpose behind it, and lose it"


def turned_before_reductions(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such reductions are kept apart from the Transpose; None where there are none."""
    if not contents.has({"Transpose"}) or not any(map(drops_axes, contents.nodes)):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked, sizes = walked_of(contents), sizes_of(contents)
    made = [dict(_found(nodes, walked, sizes)) for nodes in walked.views]
    return outputs_apart(
        flat, of_kept_types(contents, flat, made), f"{CAST}turned", "turned_before_reductions", _REASON
    )


def _found(nodes: Sequence[NodeView], walked: Walked, sizes: Mapping[str, Sizes]) -> Iterator[tuple[int, str]]:
    """The places of such reductions, with their results."""
    for place, node in enumerate(nodes):
        if not node.operator.startswith("Reduce") or not drops_axes(node.proto):
            continue
        if not is_made_by(node.input[0], "Transpose", walked.makers, LEFT_OUT):
            continue
        known = sizes.get(node.output[0])
        if known is None or (len(known) > 1 and 1 in known):
            yield place, node.output[0]
