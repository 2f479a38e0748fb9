# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of constant weights with several scales behind which axes of one element move.

A Transpose that moves only those becomes a Reshape, and its low-precision transformations move the scales over a Reshape to as many axes, to the axis
of the same number: another one, where it is as long. Of the larger of a value and itself, which is that value, the weights are computed beforehand.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, maker_before
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import is_whole

_MOVING = frozenset({"Reshape", "Transpose"})
_REASON = "OpenVINO would take the scales of its weights for those of another axis"


def weights_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such weights are kept apart from what moves their axes; None where there are none."""
    if not contents.has({"DequantizeLinear"}) or not contents.has(_MOVING):
        return None
    walked = walked_of(contents)
    found = [_found(graph, walked) for graph in walked.graphs]
    if not any(found) or (flat := flat_for(contents)) is None:
        return None
    return inputs_apart(flat, found, f"{CAST}moved", "weights_apart", "kept apart from its weights", _REASON)


def _found(graph: GraphProto, walked: Walked) -> dict[int, int]:
    """The places of what moves such weights, and of these among its inputs."""
    nodes = ((place, node) for place, node in enumerate(graph.node) if node.op_type in _MOVING and node.input)
    return {place: 0 for place, node in nodes if not canonical(node.domain) and _misplaces(node, walked)}


def _misplaces(node: NodeProto, walked: Walked) -> bool:
    """Whether a Reshape or Transpose reads weights with several scales, and may put another axis in the place of theirs."""
    maker = maker_before(node.input[0], walked.makers, {"Identity"})
    if maker is None or maker.op_type != "DequantizeLinear" or canonical(maker.domain) or len(maker.input) < 2:
        return False
    weights, scale = (walked.fixed.get(name) for name in maker.input[:2])
    if weights is None or scale is None or len(scale.dims) != 1 or scale.dims[0] == 1 or len(weights.dims) < 3:
        return False
    rank = len(weights.dims)
    axis = next((a.i for a in maker.attribute if a.name == "axis"), 1) % rank
    if node.op_type == "Transpose":
        order = next((list(a.ints) for a in node.attribute if a.name == "perm"), list(reversed(range(rank))))
        if sorted(order) != list(range(rank)):
            return False
        kept = [place for place in order if weights.dims[place] != 1]
        return kept == sorted(kept) and order[axis] != axis
    sizes = _sizes(walked.fixed.get(node.input[1]) if len(node.input) > 1 else None)
    return sizes is None or (len(sizes) == rank and sizes != list(weights.dims))


def _sizes(tensor: TensorProto | None) -> list[int] | None:
    """The sizes that a constant tells."""
    if tensor is None or tensor.data_type != TensorProto.INT64 or not is_whole(tensor):
        return None
    found: list[int] = numpy_helper.to_array(tensor).ravel().tolist()
    return found
