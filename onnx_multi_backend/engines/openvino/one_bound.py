# SPDX-License-Identifier: Apache-2.0
"""A Clip of one bound, in two forms that OpenVINO's frontend does not read as it should (2026.4).

Behind an operator that OpenVINO lacks it ends the process: of such an operator's results it knows no type, and it asks for the type to
make up the other bound (SIGSEGV). Of a constant of one element, whose lower bound only a run tells, it loses the axes.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import ModelProto, NodeProto, OperatorSetIdProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.models.graph_walk import canonical, nodes_in

#: Since this opset the bounds are inputs.
_INPUTS = 11

_ENDS = "OpenVINO's frontend ends the process over a Clip of one bound behind an operator that it lacks"
_LOSES_AXES = "OpenVINO makes a scalar of a constant of one element whose lower bound is known only at run time"

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


def without_clips_of_one_bound(facts: Facts, *, dies: bool = True) -> tuple[ModelProto, tuple[Adaptation, ...]] | None:
    """The model with Max or Min in their place; None where they do no harm.

    Parameters
    ----------
    facts : Facts
    dies : bool
        Whether the frontend gets operators that it lacks; an execution provider leaves them to others.
    """
    contents = facts.contents
    clips = [node for node in contents.of("Clip") if _lacks_a_bound(node)]
    if not clips:
        return None
    if not dies or contents.by_operator.keys() <= CONVERTED:
        clips, reason = [node for node in clips if _is_of_a_constant(node, facts)], _LOSES_AXES
    else:
        reason = _ENDS
    if not clips:
        return None
    chosen = {node.output[0] for node in clips}
    model = ModelProto()
    model.CopyFrom(contents.model)
    changes = tuple(_written(nodes_in(model.graph.node), model.opset_import, chosen, reason))
    for function in model.functions:
        changes += tuple(_written(nodes_in(function.node), function.opset_import, chosen, reason))
    return (model, changes) if changes else None


def _is_of_a_constant(node: NodeProto, facts: Facts) -> bool:
    """Whether a Clip has a lower bound alone, known only at run time, and limits what is known before."""
    x, low, high = (*node.input, "", "")[:3]
    if not low or high or low in facts.known:
        return False
    return x in facts.known or x in facts.computed_of_constants


def _lacks_a_bound(node: NodeProto) -> bool:
    return not canonical(node.domain) and node.op_type == "Clip" and len(list(filter(None, node.input))) < 3


def _written(
    nodes: Iterable[NodeProto], imports: Iterable[OperatorSetIdProto], chosen: set[str], reason: str
) -> Iterable[Adaptation]:
    if max((i.version for i in imports if not canonical(i.domain)), default=1) < _INPUTS:
        return
    for node in nodes:
        if not _lacks_a_bound(node) or node.output[0] not in chosen:
            continue
        x, low, high = (*node.input, "", "")[:3]
        where = f"Clip {node.name!r}" if node.name else f"Clip (output {next(iter(node.output), '')!r})"
        node.op_type = "Max" if low else "Min" if high else "Identity"
        del node.input[:]
        node.input.extend(filter(None, (x, low, high)))
        yield Adaptation("one_bound", where, f"written with {node.op_type}", reason)
