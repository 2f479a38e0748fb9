# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a convolution of what was multiplied by a constant along its windows.

The constant is multiplied into the weights, as one for each channel is: where it has as many elements along an axis as the window, each place of the
window is scaled instead of each place of the image. Without padding, both are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_FLOAT, inner_first, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of
from onnx_multi_backend.models.plausible import expands_too_far

_SCALING = frozenset({"Div", "LayerNormalization", "Mul"})
_REASON = "OpenVINO would multiply its constant into the weights of a convolution, along the window"


def factors_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such factors are kept apart from the convolution; None where there are none."""
    if not contents.has({"Conv"}) or not contents.has(_SCALING) or expands_too_far(contents.model):
        return None
    flat = typed_of(contents.model).flat
    if opset_versions(flat).get("", 1) < ANY_FLOAT:
        return None
    graphs = inner_first(flat.graph)
    constants = {name: tensor for graph in graphs for name, tensor in constants_of(graph).items()}
    found = [dict.fromkeys(_found(graph, constants), (0,)) for graph in graphs]
    return outputs_apart(flat, found, f"{CAST}scaled", "factors_apart", _REASON)


def _found(graph: GraphProto, constants: Mapping[str, TensorProto]) -> list[int]:
    """The places of the factors in question."""
    convolved = {node.input[0] for node in graph.node if node.op_type == "Conv" and not canonical(node.domain)}
    return [
        place
        for place, node in enumerate(graph.node)
        if node.op_type in _SCALING
        and not canonical(node.domain)
        and node.output[0] in convolved
        and _scales_places(node, constants)
    ]


def _scales_places(node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    """Whether a node multiplies by a constant that is more than one number, or one for each channel."""
    factors = node.input[1:2] if node.op_type == "LayerNormalization" else node.input
    return any(name in constants and not _is_by_channel(list(constants[name].dims)) for name in factors)


def _is_by_channel(sizes: list[int]) -> bool:
    """Whether a constant is one number, or one for each channel: at most one axis behind the second is longer, none before it.

    Of two sizes the first may be that of the channels of one image axis: ``[C, 1]``.
    """
    longer = [place for place, size in enumerate(sizes) if size > 1]
    return not longer or (len(longer) == 1 and longer[0] in (0, 1) and longer[0] < len(sizes) - 1 and sizes[-1] == 1)
