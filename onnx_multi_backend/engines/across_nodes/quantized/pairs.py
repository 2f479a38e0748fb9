# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of Q/DQ nodes where its low-precision transformations are switched off.

It computes both at once, in the kernel of what stands before them where it can. What is dequantized from the zero point is 1e-9 or so then, not 0,
and what jumps at 0 jumps wrongly; behind a reduction, a normalization or a Resize of three axes, a constant for each channel is taken for one along
another axis, and read beyond its end. With the larger of a value and itself between the nodes, each is computed by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_NUMBER, flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.distrusted import in_floating_point
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

#: What passes elements on: ONNX Runtime puts a second pair behind it.
_PASSING = frozenset({"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_PAIR = frozenset({"DequantizeLinear", "QuantizeLinear"})
_READING = _PASSING | {"DequantizeLinear"}
_REASON = "OpenVINO would compute both in one kernel, inexactly, or with constants for other channels behind them"


def pairs_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such Q/DQ nodes are computed apart; None where there are none."""
    if not contents.has({"QuantizeLinear"}) or not in_floating_point(contents):
        return None
    flat = flat_for(contents)
    if flat is None or opset_versions(flat).get("", 1) < ANY_NUMBER:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes)) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}pairs", "pairs_apart", "kept apart from what makes it", _REASON)


def _found(nodes: Sequence[NodeView]) -> Iterator[tuple[int, int]]:
    """The places of what reads quantized values to pass them on or to dequantize them, and of what passes these on, with that of the input."""
    made = {name for node in nodes if node.operator in _PAIR for name in node.output}
    for place, node in enumerate(nodes):
        if node.operator in _READING and node.input[0] in made:
            yield place, 0
