# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of Q/DQ nodes where its low-precision transformations are switched off.

It computes both at once, and what is dequantized from the zero point is 1e-9 or so, not 0. What jumps at 0 jumps wrongly. With the larger of a
value and itself between the nodes, each is computed by itself, and a zero is a zero. Another one behind them keeps ONNX Runtime from putting a
second pair behind what passes elements on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_NUMBER, flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.distrusted import in_floating_point
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_JUMPING = frozenset(
    {
        *("Cast", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mod", "NonZero"),
        *("Reciprocal", "Sign", "ThresholdedRelu"),
    }
)
#: What passes elements on.
_PASSING = frozenset({"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_REASON = "OpenVINO would compute what is dequantized from the zero point as a number near 0"


def zeros_kept(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such Q/DQ nodes are computed apart; None where there are none."""
    if not all(map(contents.has, ({"DequantizeLinear"}, {"QuantizeLinear"}, _JUMPING))) or not in_floating_point(
        contents
    ):
        return None
    flat = flat_for(contents)
    if flat is None or opset_versions(flat).get("", 1) < ANY_NUMBER:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked)) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}zeros", "zeros_kept", "kept apart from what makes it", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[tuple[int, int]]:
    """The places of the DequantizeLinears that have a zero point and are read by what jumps at 0, and of what passes these elements on, with that of the input."""
    jumping = {name for node in nodes if node.operator in _JUMPING for name in node.input}
    for node in reversed(nodes):
        if node.operator in _PASSING and not jumping.isdisjoint(node.output):
            jumping.add(node.input[0])
    exact: set[str] = set()
    for place, node in enumerate(nodes):
        if node.operator in _PASSING and node.input[0] in exact:
            yield place, 0
        if node.operator != "DequantizeLinear" or len(node.input) < 3 or jumping.isdisjoint(node.output):
            continue
        maker = walked.makers.get(node.input[0])
        if maker is not None and maker.op_type == "QuantizeLinear":
            exact.update(node.output)
            yield place, 0
