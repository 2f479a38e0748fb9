# SPDX-License-Identifier: Apache-2.0
"""A Clip of one bound behind an operator that OpenVINO lacks: its frontend ends the process.

Of such an operator's results the frontend knows no type, and it asks for the type to make up the other bound (SIGSEGV; 2026.4).
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import ModelProto, NodeProto, OperatorSetIdProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.models.graph_walk import canonical, nodes_in

#: Since this opset the bounds are inputs.
_INPUTS = 11

#: Of the default domain, what the frontend converts. Measured with ONNX's own cases.
CONVERTED = frozenset(
    """
    Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization Bernoulli
    BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu CenterCropPad Clip Col2Im Compress
    Concat Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumSum DFT DepthToSpace DequantizeLinear Div Dropout
    DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow HardSigmoid
    HardSwish Hardmax Identity If InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log
    LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg
    NegativeLogLikelihoodLoss NonMaxSuppression NonZero Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear
    RMSNormalization RNN RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round Scan
    Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus
    Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze
    Upsample Where Xor
    """.split()
)


def without_clips_of_one_bound(facts: Facts) -> tuple[ModelProto, tuple[Adaptation, ...]] | None:
    """The model with Max or Min in their place; None where they do no harm."""
    contents = facts.contents
    if not contents.has({"Clip"}) or contents.by_operator.keys() <= CONVERTED:
        return None
    if not any(map(_lacks_a_bound, contents.of("Clip"))):
        return None
    model = ModelProto()
    model.CopyFrom(contents.model)
    changes = tuple(_written(nodes_in(model.graph.node), model.opset_import))
    for function in model.functions:
        changes += tuple(_written(nodes_in(function.node), function.opset_import))
    return (model, changes) if changes else None


def _lacks_a_bound(node: NodeProto) -> bool:
    return not canonical(node.domain) and node.op_type == "Clip" and len(list(filter(None, node.input))) < 3


def _written(nodes: Iterable[NodeProto], imports: Iterable[OperatorSetIdProto]) -> Iterable[Adaptation]:
    if max((i.version for i in imports if not canonical(i.domain)), default=1) < _INPUTS:
        return
    for node in nodes:
        if not _lacks_a_bound(node):
            continue
        x, low, high = (*node.input, "", "")[:3]
        where = f"Clip {node.name!r}" if node.name else f"Clip (output {next(iter(node.output), '')!r})"
        node.op_type = "Max" if low else "Min" if high else "Identity"
        del node.input[:]
        node.input.extend(filter(None, (x, low, high)))
        reason = "OpenVINO's frontend ends the process over a Clip of one bound behind an operator that it lacks"
        yield Adaptation("one_bound", where, f"written with {node.op_type}", reason)
