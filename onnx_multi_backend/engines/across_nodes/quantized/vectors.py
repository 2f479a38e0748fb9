# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a product of a quantized vector and weights with a scale for each column, dequantized or multiplied by.

Its low-precision transformations move the scales behind the product with the axis of rows that the weights have, and the result gets it too. No
scale is moved behind the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import ranks_of
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would add an axis to the product with the scales of the columns"


def vectors_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such vectors are kept apart from their scales; None where there are none."""
    if not all(map(contents.has, ({"DequantizeLinear"}, {"QuantizeLinear"}, {"MatMul"}))):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked, ranks_of(contents))) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}vector", "vectors_apart", "kept apart from scales before it", _REASON)


def _found(nodes: Sequence[NodeView], walked: Walked, rank: Callable[[str], int | None]) -> Iterator[tuple[int, int]]:
    """The places of such products, with that of the vector."""
    scaled = Scaled(walked)
    for place, node in enumerate(nodes):
        if node.operator == "MatMul" and scaled(node.input[0]) and rank(node.input[0]) == 1:
            yield place, 0
