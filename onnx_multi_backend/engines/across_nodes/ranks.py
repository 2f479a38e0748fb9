# SPDX-License-Identifier: Apache-2.0
"""How many axes the values of a model have, as far as the nodes alone tell: inference takes twenty times as long, and believes what is declared."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.constant_reductions import axes_given
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC, PASSING
from onnx_multi_backend.engines.across_nodes.walked import NodeView, Walked
from onnx_multi_backend.models.tensors import is_whole

_CHANGING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
#: What has as many axes as what it reads first.
FIRST = (PASSING - _CHANGING - {"Max", "Min", "Pow"}) | frozenset(
    """Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization BitwiseNot CastLike Concat Conv ConvTranspose Cos Cosh CumSum DepthToSpace
    DequantizeLinear GlobalAveragePool GlobalMaxPool GroupNormalization Hardmax InstanceNormalization LayerNormalization LogSoftmax LpNormalization LRN
    MaxPool Not Pad QuantizeLinear Resize Sin Sinh Slice Softmax SpaceToDepth Split Tan Tile TopK Transpose Trilu Upsample""".split()
)
#: What has as many axes as what it reads that has most.
_MOST = ARITHMETIC | frozenset("And Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Or Pow Where Xor".split())
_FIXED: Mapping[str, int] = {"Flatten": 2, "Gemm": 2, "Range": 1, "Shape": 1, "Size": 0}


def ranks_of(walked: Walked) -> dict[str, int]:
    """The number of axes of each value that is known."""
    given = (
        (value.name, value.type.tensor_type) for value in walked.flat.graph.input
    )  # those of bodies may be declared wrongly
    ranks = {name: len(kind.shape.dim) for name, kind in given if kind.HasField("shape")}
    for graph, nodes in zip(reversed(walked.graphs), reversed(walked.views), strict=True):  # the outer ones first
        ranks.update((tensor.name, len(tensor.dims)) for tensor in graph.initializer)
        for node in nodes:
            if node.operator and node.output and (rank := _rank(node, ranks, walked.fixed)) is not None:
                ranks.update(dict.fromkeys(node.output, rank))
    for name in walked.several:
        ranks.pop(name, None)
    return ranks


def _rank(node: NodeView, ranks: Mapping[str, int], constants: Mapping[str, TensorProto | None]) -> int | None:
    """The number of axes of what a node makes."""
    operator = node.operator
    if operator == "Constant":
        tensor = constants.get(node.output[0])
        return len(tensor.dims) if tensor is not None and tensor.data_type else None
    if operator in _FIXED:
        return _FIXED[operator]
    read = [ranks.get(name) for name in node.input if name]
    if not read:
        return None
    if operator in FIRST:
        return read[0]
    known = [rank for rank in read if rank is not None]
    if operator in _MOST:
        return max(known) if len(known) == len(read) else None
    if operator == "MatMul":
        return max(known) if len(known) == 2 and min(known) > 1 else None
    if operator == "Gather":
        return known[0] + known[1] - 1 if len(known) == 2 else None
    if operator == "ConstantOfShape":
        return _length(node.input[0], constants)
    if operator == "Expand":
        length = _length(node.input[1], constants) if len(node.input) > 1 else None
        return None if read[0] is None or length is None else max(read[0], length)
    if operator == "Reshape":
        return _length(node.input[1], constants) if len(node.input) > 1 else None
    if operator in ("Squeeze", "Unsqueeze"):
        axes = axes_named(node.proto, constants)
        return None if read[0] is None or axes is None else read[0] + (axes if operator == "Unsqueeze" else -axes)
    if operator.startswith("Reduce") and all(a.i for a in node.proto.attribute if a.name == "keepdims"):
        return read[0]
    return None


def axes_stored(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> tuple[int, ...] | None:
    """The axes that a node names, by an attribute or a stored list, none for all; None where they are not known."""
    held = {name: tensor for name in node.input[1:2] if (tensor := constants.get(name)) is not None}
    return axes_given(node, {n: tensor for n, tensor in held.items() if tensor.data_type and is_whole(tensor)})


def axes_named(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> int | None:
    """How many axes a node names."""
    if len(node.input) > 1:
        return _length(node.input[1], constants)
    return next((len(a.ints) for a in node.attribute if a.name == "axes"), None)


def _length(name: str, constants: Mapping[str, TensorProto | None]) -> int | None:
    """How many elements a stored list has."""
    tensor = constants.get(name)
    return tensor.dims[0] if tensor is not None and tensor.data_type and len(tensor.dims) == 1 else None
