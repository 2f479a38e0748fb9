# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2026.4) makes of a DequantizeLinear of several scales with a QuantizeLinear behind it, or a factor or a Cast between them.

Where sizes are open it quantizes by the first scale for all. With the larger of a value and itself behind the DequantizeLinear, which is that value,
each scale counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_READING = frozenset({"Cast", "Div", "Identity", "Mul", "Neg", "QuantizeLinear"})
_REASON = "OpenVINO would quantize what is behind it by the first of its scales"


def scales_kept(contents: Contents) -> Rewritten | None:
    """A copy of the model in which each scale counts; None where there is no such DequantizeLinear."""
    if not all(map(contents.has, ({"DequantizeLinear"}, {"QuantizeLinear"}))):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked)) for nodes in walked.views]
    return outputs_apart(flat, found, f"{CAST}scales", "scales_kept", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[tuple[int, list[int]]]:
    """The places of such nodes, with that of their output."""
    read = {name for node in nodes if node.operator in _READING for name in node.input}
    for place, node in enumerate(nodes):
        if node.operator != "DequantizeLinear" or node.input[0] in walked.fixed or node.output[0] not in read:
            continue
        scale = walked.fixed.get(node.input[1])
        if scale is not None and math.prod(scale.dims) > 1:
            yield place, [0]
