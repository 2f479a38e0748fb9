# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a convolution with a bias whose result is quantized, where another size is only known in a run.

Where a run alone tells the size of something (the initial state of an LSTM, an Expand, Range, Slice, Pad or TopK of a size from `Shape`), the bias is
lost on its way into the limits of the quantization. Written as an Add behind the convolution it is not, and it is computed in the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, has_fixed_inputs, larger
from onnx_multi_backend.engines.across_nodes.rewritten import BIASES_ADDED, Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of, put_back

#: What weights come through.
_SCALING = frozenset({"Cast", "DequantizeLinear", "Identity", "QuantizeLinear"})
#: Operators whose results have sizes that follow from the shapes of what they read: a model of these alone keeps its biases.
_PLAIN = frozenset(
    """Add AveragePool BatchNormalization Clip Concat Constant Conv DequantizeLinear Div Dropout Elu Flatten Gather Gemm GlobalAveragePool
    GlobalMaxPool HardSigmoid HardSwish Identity LeakyRelu MatMul MaxPool Mul PRelu QuantizeLinear ReduceMean Relu Reshape Sigmoid Softmax
    Squeeze Sub Tanh Transpose Unsqueeze""".split()
)
_REASON = "OpenVINO would lose the bias, where what is behind it is quantized and a run alone tells another size"


def biases_added(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these biases are added behind the convolution; None where there are none."""
    meant = contents.has({"QuantizeLinear"}) and contents.has({"Conv"}) and not contents.by_operator.keys() <= _PLAIN
    if not meant or has_fixed_inputs(contents.model):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    constants = {name: tensor for graph in graphs for name, tensor in constants_of(graph).items()}
    makers = walked.makers

    def rank(node: NodeProto) -> int | None:
        if node.op_type != "Conv" or canonical(node.domain) or len(node.input) < 3 or not node.input[2]:
            return None
        if (found := _rank(node, constants, makers)) is not None:
            return found
        known = walked.types.get(node.input[1])
        return len(known.shape.dim) if known is not None and known.HasField("shape") else None

    if not any(rank(node) for graph in graphs for node in graph.node):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    taken, changes, added = names_taken(flat), list[Adaptation](), set[str]()
    for graph in inner_first(copy.graph):
        _add(graph, rank, taken, changes, added)
    return Rewritten(copy, tuple(changes), frozenset(added))


def _add(
    graph: GraphProto,
    rank_of: Callable[[NodeProto], int | None],
    taken: set[str],
    changes: list[Adaptation],
    added: set[str],
) -> None:
    """Do so in one graph."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if not (rank := rank_of(node)):
            continue
        made, bias = node.output[0], node.input[2]
        plain, column, shape, same = (
            unused(f"{made}{CAST}{part}", taken) for part in ("plain", "bias", "shape", "same")
        )
        changes.append(Adaptation(BIASES_ADDED, f"Conv {node.name or made!r}", "its bias is added behind it", _REASON))
        node.output[0] = plain
        del node.input[2]
        sizes = numpy_helper.from_array(np.array([1, -1, *[1] * (rank - 2)], np.int64))
        behind = [
            larger(bias, same, name=same),  # ONNX Runtime would dequantize behind the Reshape, and limit int32 to uint8
            helper.make_node("Constant", [], [shape], name=shape, value=sizes),
            helper.make_node("Reshape", [same, shape], [column], name=column),
            helper.make_node("Add", [plain, column], [made], name=plain),
        ]
        nodes += behind
        added.update(new.name for new in behind)
    put_back(graph, nodes)


def _rank(node: NodeProto, constants: Mapping[str, TensorProto], makers: Mapping[str, NodeProto]) -> int | None:
    """The rank of a Conv, by its window or its constant weights, quantized or not; None where they do not tell."""
    window = next((list(a.ints) for a in node.attribute if a.name == "kernel_shape"), [])
    if window:
        return 2 + len(window)
    name = node.input[1]
    while name not in constants and (maker := makers.get(name)) is not None and maker.op_type in _SCALING:
        name = maker.input[0]
    return len(constants[name].dims) if name in constants else None
