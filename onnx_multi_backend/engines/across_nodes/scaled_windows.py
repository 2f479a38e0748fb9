# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a convolution of what was multiplied by a constant along its windows.

The constant is multiplied into the weights, as one for each channel is: where it has as many elements along an axis as the window, each place of the
window is scaled instead of each place of the image. Without padding, both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from onnx import GraphProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import kept_types, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

#: Where the factors of operators are among their inputs.
_SCALING: Mapping[str, slice] = {
    "Div": slice(1, 2),
    "LayerNormalization": slice(1, 2),
    "Mul": slice(0, 2),
    "RMSNormalization": slice(1, 2),
    "SimplifiedLayerNormalization": slice(1, 2),
    "SkipLayerNormalization": slice(2, 3),
}
#: What OpenVINO moves a factor over; some of it where it changes nothing, and is left out.
_PASSING = frozenset({"Cast", "Div", "Dropout", "Expand", "Identity", "Mul", "Neg", "Pad", "Reshape", "Slice", "Tile"})
#: ONNX Runtime's has normalizations too.
_DOMAINS = ("", "com.microsoft")
_REASON = "OpenVINO would multiply its constant into the weights of a convolution, along the window"


def factors_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such factors are kept apart from the convolution; None where there are none."""
    if not contents.has({"Conv"}) or not contents.has(_SCALING):
        return None
    walked = walked_of(contents)
    kinds = kept_types(opset_versions(walked.flat).get("", 1))
    found = [dict.fromkeys(_found(graph, walked.fixed, kinds), (0,)) for graph in walked.graphs]
    return outputs_apart(walked.flat, found, f"{CAST}scaled", "factors_apart", _REASON)


def _found(graph: GraphProto, constants: Mapping[str, TensorProto | None], kinds: Collection[int] | None) -> list[int]:
    """The places of the factors in question."""
    ranks: dict[str, int | None] = {}
    for node in reversed(graph.node):
        if canonical(node.domain):
            continue
        if node.op_type == "Conv":
            weights = constants.get(node.input[1])
            ranks[node.input[0]] = len(weights.dims) if weights is not None else None
        elif node.op_type in _PASSING and node.output[0] in ranks:
            for name in node.input:
                ranks.setdefault(name, ranks[node.output[0]])
    return [
        place
        for place, node in enumerate(graph.node)
        if node.op_type in _SCALING
        and canonical(node.domain) in _DOMAINS
        and node.output[0] in ranks
        and any(
            name in constants and _scales_places(constants[name], ranks[node.output[0]], kinds)
            for name in node.input[_SCALING[node.op_type]]
        )
    ]


def _scales_places(tensor: TensorProto | None, rank: int | None, kinds: Collection[int] | None) -> bool:
    """Whether a constant is, or may be, more than one number, or one for each channel."""
    if tensor is None:
        return kinds is None
    if math.prod(tensor.dims) == 1 or (kinds is not None and tensor.data_type not in kinds):
        return False
    sizes = [1] * ((rank or 0) - len(tensor.dims)) + list(tensor.dims)
    return rank is None or any(size > 1 for place, size in enumerate(sizes) if place != 1)
