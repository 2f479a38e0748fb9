# SPDX-License-Identifier: Apache-2.0
"""The sizes of a model's values, as far as its inputs and its nodes tell. onnx's inference takes ten times as long, and believes what is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx_multi_backend.adapt.single_node import kept_beside
from onnx_multi_backend.adapt.sizes import computing, moving
from onnx_multi_backend.adapt.sizes.known import Known
from onnx_multi_backend.adapt.sizes.numbers import FOLLOWED
from onnx_multi_backend.adapt.sizes.size import OPEN, Sizes, broadcast, held
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.models.contents import Contents

#: What has the sizes of what it reads first.
_ALIKE = frozenset(
    """Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh CumSum DequantizeLinear Dropout
    DynamicQuantizeLinear Elu Erf Exp EyeLike Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN
    LayerNormalization LeakyRelu Log LogSoftmax LpNormalization Mish Neg Not PRelu QuantizeLinear QuickGelu RMSNormalization Reciprocal Relu ReverseSequence Round
    ScatterElements ScatterND Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu""".split()
)
#: What has as many axes as what it reads first.
FIRST = _ALIKE - {"DynamicQuantizeLinear", "PRelu", "RMSNormalization", "ScatterElements", "ScatterND"} | frozenset(
    """AveragePool Concat Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalMaxPool MaxPool Pad Resize Slice SpaceToDepth Split Tile TopK
    Transpose Upsample""".split()
)
#: Of these all outputs have as many axes.
_SEVERAL = frozenset({"Dropout", "MaxPool", "Split", "TopK"})
_ELEMENTWISE = frozenset(
    """Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where
    Xor""".split()
)
#: What makes values of these numbers of axes.
_OF_OUTPUTS: Mapping[str, tuple[int, ...]] = {"GRU": (4, 3), "LSTM": (4, 3, 3), "RNN": (4, 3)}


def sizes_of(contents: Contents) -> Mapping[str, Sizes]:
    """The sizes of each value of which the number of axes is known; those that a run alone tells are open. Of a model without local functions."""
    kept = kept_beside(contents.model)
    if "sizes" not in kept:
        kept["sizes"] = _sizes(walked_of(contents))
    found: Mapping[str, Sizes] = kept["sizes"]
    return found


def ranks_of(contents: Contents) -> Callable[[str], int | None]:
    """Tells how many axes a value has: by these sizes, and else by what is declared or inferred; None where that is not known."""
    sizes, walked = sizes_of(contents), walked_of(contents)
    return lambda name: len(sizes[name]) if name in sizes else walked.rank(name)


def _sizes(walked: Walked) -> dict[str, Sizes]:
    known = Known(walked)
    for graph, nodes in zip(reversed(walked.graphs), reversed(walked.views), strict=True):  # the outer ones first
        stored = (
            tensor for tensor in graph.initializer if tensor.name not in known.unknown
        )  # a default may be of other sizes
        known.sizes.update((tensor.name, tuple(tensor.dims)) for tensor in stored)
        for node in nodes:
            if node.operator and node.output:
                _learn(known, node)
        for name in walked.several:
            known.sizes.pop(name, None)
    return known.sizes


def _learn(known: Known, node: NodeView) -> None:
    """Tell what a node makes."""
    operator, sizes = node.operator, known.sizes
    if operator in _ALIKE:
        made = known.read(node, 0)
    else:
        rule = _RULES.get(operator)
        made = rule(known, node) if rule is not None else _by_kind(known, node)
    if made is not None:
        if operator in _SEVERAL:
            sizes.update(dict.fromkeys(node.output, made))
        else:
            sizes[node.output[0]] = made
        if operator == "DynamicQuantizeLinear":  # its scale and zero point are numbers
            sizes.update(dict.fromkeys(node.output[1:], ()))
    may_be_followed = operator in FOLLOWED and len(node.output) == 1 and node.output[0] not in known.unknown
    if may_be_followed and made is not None and len(made) < 2:
        known.numbers.learn(node, sizes)


def _by_kind(known: Known, node: NodeView) -> Sizes | None:
    operator = node.operator
    if operator in FIRST:
        first = known.read(node, 0)
        return None if first is None else (None,) * len(first)
    if operator in _ELEMENTWISE:
        read = [known.sizes.get(name) for name in node.input if name]
        told = [sizes for sizes in read if sizes is not None]
        is_plain = len(told) == len(read) and not any(a.name == "axis" for a in node.proto.attribute)
        return broadcast(told) if told and is_plain else None
    if operator in _OF_OUTPUTS:
        known.sizes.update(
            (name, (None,) * rank) for name, rank in zip(node.output, _OF_OUTPUTS[operator], strict=False)
        )
        return (None,) * _OF_OUTPUTS[operator][0]
    return computing.reduced(known, node) if operator.startswith("Reduce") else None


def _constant(known: Known, node: NodeView) -> Sizes | None:
    tensor = known.walked.fixed.get(node.output[0])
    return tuple(tensor.dims) if tensor is not None and tensor.data_type else None


def _shape(known: Known, node: NodeView) -> Sizes:
    given = known.read(node, 0)
    if given is None:
        return (None,)
    named = {a.name: a.i for a in node.proto.attribute}
    return (len(given[named.get("start", 0) : named.get("end", len(given))]),)


def _expand(known: Known, node: NodeView) -> Sizes | None:
    data, wanted = known.read(node, 0), known.listed_sizes(node, 1)
    return None if data is None or wanted is None else broadcast([data, wanted])


def _filled(known: Known, node: NodeView) -> Sizes | None:
    return known.listed_sizes(node, 0)


def _range(known: Known, node: NodeView) -> Sizes:
    read = [known.numbers.of(name) for name in node.input]
    bounds = [numbers[0] if numbers is not None and len(numbers) == 1 else None for numbers in read]
    if len(bounds) != 3 or None in bounds:
        return (None,)
    if OPEN in bounds:
        return (OPEN,)
    start, end, step = (bound for bound in bounds if isinstance(bound, int))
    return (held(max(-((start - end) // step), 0)) if step else None,)


_RULES: Mapping[str, Callable[[Known, NodeView], Sizes | None]] = {
    "ArgMax": computing.of_extremes,
    "ArgMin": computing.of_extremes,
    "Concat": moving.concat,
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "AveragePool": computing.windows,
    "Conv": computing.windows,
    "ConvInteger": computing.windows,
    "ConvTranspose": computing.transposed_convolution,
    "Einsum": computing.einsum,
    "Expand": _expand,
    "Flatten": moving.flatten,
    "Gather": moving.gather,
    "GatherElements": moving.gather_elements,
    "GatherND": moving.gather_slices,
    "Gemm": computing.gemm,
    "MatMul": computing.matmul,
    "MatMulInteger": computing.matmul,
    "MaxPool": computing.windows,
    "Range": _range,
    "Resize": computing.resize,
    "Reshape": moving.reshape,
    "Shape": _shape,
    "Size": lambda known, node: (),
    "Slice": moving.slice_,
    "Split": moving.split,
    "Squeeze": moving.squeeze,
    "Tile": moving.tile,
    "Transpose": moving.transpose,
    "Unsqueeze": moving.unsqueeze,
}
