# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a quantized convolution or product without a bias whose result several nodes read, of open shapes.

What reads the result (Relu, Mul, Exp, QuantizeLinear, ...) is computed in place, and the others read what it made. On a processor without AVX2 it is
so in fixed shapes too. Behind the larger of a value and itself, which is that value, nothing is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, has_fixed_inputs, outputs_apart
from onnx_multi_backend.engines.across_nodes.kernels import processor_has
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, names_read

_SHARED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
#: What joins the scale of the weights, by a number.
_SCALING = frozenset({"Cast", "Div", "Identity", "Mul"})
#: What is written with several nodes that read its input, by OpenVINO or around it.
_READING_TWICE = frozenset({"DynamicQuantizeLinear", "ReduceMax", "ReduceMin", "ReduceSumSquare"})
_REASON = "OpenVINO would compute one of those that read the result in place of it"


def results_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these results are kept apart from what reads them; None where there are none."""
    quantized = contents.has({"QuantizeLinear"}) and contents.has({"DequantizeLinear"}) and contents.has(_SHARED)
    if not quantized or (has_fixed_inputs(contents.model) and processor_has("avx2")):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs, constants, makers = walked.graphs, walked.fixed, walked.makers
    found = [dict.fromkeys(_found(graph, constants, makers), (0,)) for graph in graphs]
    return outputs_apart(flat, found, f"{CAST}shared", "results_apart", _REASON)


def _found(
    graph: GraphProto, constants: Mapping[str, TensorProto | None], makers: Mapping[str, NodeProto]
) -> list[int]:
    """The places of such convolutions and products."""
    meant = [i for i, node in enumerate(graph.node) if _is_meant(node, makers)]
    if not meant:
        return []
    times: defaultdict[str, int] = defaultdict(int)
    again = [node.input[0] for node in graph.node if node.op_type in _READING_TWICE and not canonical(node.domain)]
    for name in (*names_read(graph), *again):
        times[name] += 1
    scaled = {
        name: node.output[0]
        for node in graph.node
        if node.op_type in _SCALING and not canonical(node.domain) and _by_a_number(node, constants)
        for name in node.input
        if name not in constants
    }

    def is_shared(name: str) -> bool:
        while times[name] == 1 and name in scaled:
            name = scaled[name]
        return times[name] > 1

    return [i for i in meant if is_shared(graph.node[i].output[0])]


def _is_meant(node: NodeProto, makers: Mapping[str, NodeProto]) -> bool:
    if node.op_type not in _SHARED or canonical(node.domain) or (len(node.input) > 2 and node.input[2]):
        return False
    weights = makers.get(node.input[1])
    return weights is not None and weights.op_type != "Constant"


def _by_a_number(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> bool:
    return all(_is_number(constants[name]) for name in node.input if name in constants)


def _is_number(tensor: TensorProto | None) -> bool:
    """Whether a constant is, or may be, of one element."""
    return tensor is None or math.prod(tensor.dims) == 1
