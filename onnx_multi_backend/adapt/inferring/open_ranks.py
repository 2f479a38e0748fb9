# SPDX-License-Identifier: Apache-2.0
"""Ranks that onnx's inference leaves open, and that follow from the ranks of what a node reads; and shapes that ai.onnx.ml's operators keep."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

from onnx_multi_backend.adapt.inferring import ml_shapes
from onnx_multi_backend.models.plausible import MOST_AXES

#: Operators whose results have a rank that onnx leaves open where a run alone tells what their other inputs hold; that rank, or None
#: where it depends on the inputs.
_LEFT_OPEN: Mapping[str, int | None] = {
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), 1),
    "MelWeightMatrix": 2,
    "STFT": 4,
    **dict.fromkeys(("CenterCropPad", "MaxUnpool", "Pad", "Reshape", "Resize", "Split", "Unsqueeze"), None),
    "MeanVarianceNormalization": None,
}
#: Those of the shape that they read: onnx (1.23) tells nothing of them.
_ALIKE = frozenset({"MeanVarianceNormalization"})


def open_ranks(graph: GraphProto) -> list[ValueInfoProto]:
    """Results whose rank onnx leaves open where a run alone tells another input."""
    nodes = [node for node in graph.node if _is_meant(node)]
    if not nodes:
        return []
    asked = {name for node in nodes for name in (*node.input, *node.output)}
    values = (*graph.value_info, *graph.output, *graph.input)
    types = {v.name: v.type.tensor_type for v in values if v.name in asked}
    for tensor in graph.initializer:
        if tensor.name in asked:
            types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims).tensor_type
    found = []
    for node in nodes:
        data = types.get(node.input[0]) if node.input else None
        if node.domain:
            for value in ml_shapes.results(node, data):
                if value.name not in types or not types[value.name].HasField("shape"):
                    found.append(value)
                    types[value.name] = value.type.tensor_type
            continue
        rank = _result_rank(node, types)
        for name in filter(None, node.output):
            made = types.get(name)
            if made is not None and made.HasField("shape"):
                continue
            kind = made.elem_type if made is not None else 0
            if not kind and data is not None and _LEFT_OPEN.get(node.op_type) is None:
                kind = data.elem_type
            if kind and rank is not None and rank < MOST_AXES:
                found.append(helper.make_tensor_value_info(name, kind, _sizes(node, data, rank)))
                types[name] = found[-1].type.tensor_type  # for what reads it
    return found


def _is_meant(node: NodeProto) -> bool:
    if node.domain:
        return node.domain == "ai.onnx.ml" and node.op_type in ml_shapes.OPERATORS
    return node.op_type in _LEFT_OPEN or _keeps_axes(node)


def _result_rank(node: NodeProto, types: dict[str, TypeProto.Tensor]) -> int | None:
    """The rank of each result: of Reshape as long as the new shape, of Unsqueeze more by as many axes as are named."""
    rank = _LEFT_OPEN.get(node.op_type)
    if rank is not None:
        return rank
    first, second = (types.get(name) for name in (*node.input[:2], "", "")[:2])
    if node.op_type == "Reshape":
        return _length(second)
    rank = _rank(first)
    if node.op_type == "Unsqueeze":
        more = _length(second)
        return None if rank is None or more is None else rank + more
    return rank


def _sizes(node: NodeProto, data: TypeProto.Tensor | None, rank: int) -> list[int | None]:
    if node.op_type not in _ALIKE or data is None:
        return [None] * rank
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in data.shape.dim]


def _keeps_axes(node: NodeProto) -> bool:
    """Whether it is a reduction along axes that a run may tell, and that are kept."""
    if not node.op_type.startswith("Reduce") or len(node.input) < 2:
        return False
    return all(a.i for a in node.attribute if a.name == "keepdims")


def _rank(kind: TypeProto.Tensor | None) -> int | None:
    return len(kind.shape.dim) if kind is not None and kind.HasField("shape") else None


def _length(kind: TypeProto.Tensor | None) -> int | None:
    """How many elements a list has."""
    size = kind.shape.dim[0] if kind is not None and _rank(kind) == 1 else None
    return size.dim_value if size is not None and size.HasField("dim_value") and size.dim_value >= 0 else None
