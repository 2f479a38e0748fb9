# SPDX-License-Identifier: Apache-2.0
"""Around what ONNX Runtime's CPU provider (1.24 to 1.32) makes of Q/DQ nodes with a scale for each element of an axis.

Its fusions do not look at the axis. Weights of a product that are scaled along the axis that is added up, and weights of a convolution that are
scaled along another axis than the first, are scaled as if it were the columns or filters; so are those that are the first operand; of other sizes
a run fails. Activations and results with several scales are given to kernels that know one: the model is refused, or a run fails; Softmax takes
the first scale. So it does before 1.28 of a
Gemm by weights with several scales and no zero point. Nothing is fused with the larger of a value and itself, which is that value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import maker_before, outputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.scaled_rows import Weights
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.plausible import expands_too_far

#: What Max takes.
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})
#: What moves elements between the scales and a product.
MOVING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
#: What may be left out, or moved, between a node and the QuantizeLinear behind it.
_LEFT_OUT = MOVING | {"Clip", "Dropout", "Relu"}
_QUANTIZE = "QuantizeLinear"
#: What has kernels for quantized values that know one scale of the result.
_FUSED = frozenset(
    """Add AveragePool Concat Conv Gemm GlobalAveragePool LeakyRelu MatMul Mul ReduceMean Sigmoid Softmax Where""".split()
)
_REASON = "ONNX Runtime would take its scales for those of another axis, or for one"


def scales_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these Q/DQ nodes are kept from fusions; None where there are none."""
    if (
        not contents.has({"DequantizeLinear"})
        or not contents.has({"QuantizeLinear"})
        or expands_too_far(contents.model)
    ):
        return None
    walked = walked_of(contents)
    graphs, constants = walked.graphs, walked.fixed
    scaled = {
        name
        for graph in graphs
        for node in graph.node
        if _has_several_scales(node, constants)
        for name in (node.input[:1] if node.op_type == _QUANTIZE else node.output)
    }
    if not scaled:
        return None
    misread = Weights(walked).scaled_along_rows() | _across_filters(walked) | _operands(walked)

    def is_meant(node: NodeProto) -> bool:
        """Whether its result has several scales, and a fusion would take them for others."""
        if scaled.isdisjoint(node.output):
            return False
        if node.op_type == "DequantizeLinear":
            return node.input[0] not in constants or node.output[0] in misread
        return _is_fused(node, walked)

    places = [{i: (0,) for i, node in enumerate(graph.node) if is_meant(node)} for graph in graphs]
    return outputs_apart(walked.flat, places, f"{CAST}scales", "scales_apart", _REASON)


def _has_several_scales(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> bool:
    """Whether it is a QuantizeLinear or a DequantizeLinear with a scale for each element of an axis."""
    if node.op_type not in (_QUANTIZE, "DequantizeLinear") or canonical(node.domain) or len(node.input) < 2:
        return False
    scale = constants.get(node.input[1])
    if scale is None or math.prod(scale.dims) == 1 or scale.data_type not in _FLOATS:
        return False
    given = {a.name: a.i for a in node.attribute}
    # Of several blocks along an axis there is no fusion.
    return not given.get("block_size") or scale.dims[given.get("axis", 1)] == 1


def _is_fused(node: NodeProto, walked: Walked) -> bool:
    """Whether a node may be computed together with the QuantizeLinear behind it."""
    maker = maker_before(node.output[0], walked.makers, _LEFT_OUT)
    return maker is not None and maker.op_type in _FUSED and not canonical(maker.domain)


def _operands(walked: Walked) -> set[str]:
    """What is the first operand of a product, or, before 1.28, the second one of a Gemm and has no zero point, before it was moved."""
    unshifted = applies({"onnxruntime": "<1.28"})
    found = set[str]()
    for node in (node for graph in walked.graphs for node in graph.node if not canonical(node.domain)):
        if node.op_type not in ("Gemm", "MatMul"):
            continue
        for place, name in enumerate(node.input[:2]):
            maker = maker_before(name, walked.makers, MOVING)
            if maker is not None and (not place or (unshifted and node.op_type == "Gemm" and not any(maker.input[2:]))):
                found.update(maker.output)
    return found


def _across_filters(walked: Walked) -> set[str]:
    """The weights of convolutions that a DequantizeLinear scales along another axis than the first, or before they are moved."""
    found = set[str]()
    for node in (
        node for graph in walked.graphs for node in graph.node if node.op_type == "Conv" and not canonical(node.domain)
    ):
        maker = maker_before(node.input[1], walked.makers, MOVING)
        if maker is None or maker.op_type != "DequantizeLinear":
            continue
        moved = maker is not maker_before(node.input[1], walked.makers, {"Identity"})
        if moved or next((a.i for a in maker.attribute if a.name == "axis"), 1):
            found.update(maker.output)
    return found
