# SPDX-License-Identifier: Apache-2.0
"""A Clip that lacks a bound, or limits a constant: two forms that OpenVINO's frontend does not read as it should (2026.4).

Of one bound, behind an operator that OpenVINO lacks, it ends the process: of such an operator's results it knows no type, and it asks for the
type to make up the other bound (SIGSEGV). Of a constant of one element, whose lower bound alone a run tells, it loses the axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.models.graph_walk import canonical, put_back, subgraphs

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
    """The model with Max, Min or Where in their place; None where they do no harm.

    Parameters
    ----------
    facts : Facts
    dies : bool
        Whether the frontend gets operators that it lacks; an execution provider leaves them to others.
    """
    contents = facts.contents
    all_clips = [node for node in contents.of("Clip") if not canonical(node.domain)]
    if not all_clips:
        return None
    reason = _LOSES_AXES
    clips = [node for node in all_clips if _is_of_a_constant(node, facts)]
    crops = any(a.s == b"tf_crop_and_resize" for node in contents.of("Resize") for a in node.attribute)
    if dies and (crops or not contents.by_operator.keys() <= CONVERTED):
        ending = [node for node in all_clips if len(list(filter(None, node.input))) < 3]
        clips, reason = [*clips, *ending], _ENDS if ending else reason
    if not clips:
        return None
    chosen = {node.output[0] for node in clips}
    model = ModelProto()
    model.CopyFrom(contents.model)
    changes = tuple(_written(model.graph, model.opset_import, chosen, reason))
    for function in model.functions:
        changes += tuple(_written(function, function.opset_import, chosen, reason))
    return (model, changes) if changes else None


def _is_of_a_constant(node: NodeProto, facts: Facts) -> bool:
    """Whether a run tells the lower bound of a Clip alone, which limits what is known before."""
    x, low, high = (*node.input, "", "")[:3]
    if not low or low in facts.known or not (not high or _is_computed(high, facts)):
        return False
    return _is_computed(x, facts)


def _is_computed(name: str, facts: Facts) -> bool:
    return name in facts.known or name in facts.computed_of_constants


def _written(
    holder: GraphProto | FunctionProto, imports: Iterable[OperatorSetIdProto], chosen: set[str], reason: str
) -> Iterator[Adaptation]:
    """Write these with Max, Min and Where, in a graph or function and the graphs inside it."""
    if max((i.version for i in imports if not canonical(i.domain)), default=1) < _INPUTS:
        return
    nodes: list[NodeProto] = []
    for node in holder.node:
        for graph in subgraphs(node):
            yield from _written(graph, imports, chosen, reason)
        nodes.append(node)
        if node.op_type != "Clip" or canonical(node.domain) or node.output[0] not in chosen:
            continue
        x, low, high = (*node.input, "", "")[:3]
        made = node.output[0]
        where = f"Clip {node.name!r}" if node.name else f"Clip (output {made!r})"
        node.op_type = "Max" if low else "Min" if high else "Identity"
        del node.input[:]
        node.input.extend(filter(None, (x, low or high)))
        if low and high:  # Min behind Max is a Clip again
            raised, above = f"{made}{CAST}raised", f"{made}{CAST}above"
            node.output[0] = raised
            nodes.append(helper.make_node("Less", [high, raised], [above], name=above))
            nodes.append(helper.make_node("Where", [above, high, raised], [made], name=raised))
        yield Adaptation(
            "one_bound", where, f"written with {'Max and Where' if low and high else node.op_type}", reason
        )
    put_back(holder, nodes)
