# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Pad of quantized values along one axis.

Its low-precision transformations move the scale behind the Pad, and lose the number that is padded with; along an axis of one element, also the zero
point. Behind the larger of a value and itself, which is that value, it is computed in floating point.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, numpy_helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import is_whole

_REASON = "OpenVINO would pad with another number"


def pads_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from scales; None where there are none."""
    if not contents.has({"Pad"}) or not contents.has({"DequantizeLinear"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    constants, scaled = walked.fixed, Scaled(walked)

    def is_wrong(node: NodeProto) -> bool:
        if node.op_type != "Pad" or canonical(node.domain) or not scaled(node.input[0]):
            return False
        if any(a.name == "mode" and a.s != b"constant" for a in node.attribute):
            return False
        axis = _axis(node, constants)
        if axis is None:  # several
            return False
        return _may_be_more(node, constants) or _may_be_one(walked.types.get(node.input[0]), axis)

    places = [{i: 0 for i, node in enumerate(graph.node) if is_wrong(node)} for graph in graphs]
    return inputs_apart(flat, places, f"{CAST}padded", "pads_apart", "kept apart from scales before it", _REASON)


def _axis(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> int | None:
    """The axis that is padded; None where these are several, or none, and -1 where it is not known."""
    pads = next((list(a.ints) for a in node.attribute if a.name == "pads"), None)
    if pads is None:
        tensor = constants.get(node.input[1]) if len(node.input) > 1 else None
        if tensor is None or not is_whole(tensor) or any(node.input[3:]):
            return -1
        pads = numpy_helper.to_array(tensor).ravel().tolist()
    half = len(pads) // 2
    padded = [axis for axis in range(half) if pads[axis] or pads[half + axis]]
    return padded[0] if len(padded) == 1 else None


def _may_be_more(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> bool:
    """Whether the number that is padded with may not be 0."""
    if any(a.name == "value" and a.f for a in node.attribute):
        return True
    if len(node.input) < 3 or not node.input[2]:
        return False
    tensor = constants.get(node.input[2])
    return tensor is None or not is_whole(tensor) or bool(np.any(numpy_helper.to_array(tensor)))


def _may_be_one(known: TypeProto.Tensor | None, axis: int) -> bool:
    """Whether an axis may have one element."""
    if known is None or not known.HasField("shape") or not 0 <= axis < len(known.shape.dim):
        return True
    size = known.shape.dim[axis]
    return size.HasField("dim_value") and size.dim_value == 1
