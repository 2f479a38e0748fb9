# SPDX-License-Identifier: Apache-2.0
"""Around what ONNX Runtime's CPU provider (1.24 to 1.32) makes of Q/DQ nodes with a scale for each element of an axis.

Its fusions do not look at the axis. Weights of a product that are scaled along the axis that is added up, and weights of a convolution that are
scaled along another axis than the first, are scaled as if it were the columns or filters; so are those that are the first operand; of other sizes
a run fails. Activations with several scales are given to kernels that know one: the model is refused, or a run fails. So it does before 1.28 of a
Gemm by weights with several scales and no zero point. Nothing is fused with the larger of a value and itself, which is that value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.across_nodes.apart import maker_before, outputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.scaled_rows import Weights
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import Walked, walked_of
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.plausible import expands_too_far

#: What Max takes.
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16})
#: What moves elements between the scales and a product.
MOVING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
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
    found = [[place for place, node in enumerate(g.node) if _has_several_scales(node, constants)] for g in graphs]
    if not any(found):
        return None
    misread = Weights(graphs, constants).scaled_along_rows() | _across_filters(walked) | _operands(walked)
    places = [
        {i: (0,) for i in own if graph.node[i].input[0] not in constants or graph.node[i].output[0] in misread}
        for graph, own in zip(graphs, found, strict=True)
    ]
    return outputs_apart(walked.flat, places, f"{CAST}scales", "scales_apart", _REASON)


def _has_several_scales(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> bool:
    """Whether it is a DequantizeLinear with a scale for each element of an axis."""
    if node.op_type != "DequantizeLinear" or canonical(node.domain):
        return False
    scale = constants.get(node.input[1])
    if scale is None or math.prod(scale.dims) == 1 or scale.data_type not in _FLOATS:
        return False
    return not any(a.name == "block_size" and a.i for a in node.attribute)


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
