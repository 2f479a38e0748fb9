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
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_NUMBER, flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.distrusted import in_floating_point
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

#: What passes elements on: ONNX Runtime puts a second pair behind it.
_PASSING = frozenset({"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_REASON = "OpenVINO would compute both in one kernel, inexactly, or with constants for other channels behind them"


def pairs_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such Q/DQ nodes are computed apart; None where there are none."""
    if not contents.has({"QuantizeLinear"}) or not in_floating_point(contents):
        return None
    flat = flat_for(contents)
    if flat is None or opset_versions(flat).get("", 1) < ANY_NUMBER:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked)) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}pairs", "pairs_apart", "kept apart from what makes it", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[tuple[int, int]]:
    """The places of the DequantizeLinears, and of what passes these elements on, with that of the input."""
    exact: set[str] = set()
    for place, node in enumerate(nodes):
        if node.operator in _PASSING and node.input[0] in exact:
            yield place, 0
        elif node.operator == "DequantizeLinear":
            maker = walked.makers.get(node.input[0])
            if maker is not None and maker.op_type == "QuantizeLinear":
                exact.update(node.output)
                yield place, 0
