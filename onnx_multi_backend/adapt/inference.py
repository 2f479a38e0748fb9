# SPDX-License-Identifier: Apache-2.0
"""Inferring the types of a model's values, in bounded time and memory.

onnx follows integers through a model as if they were shapes and makes a message of some 80 bytes for each of them, whether they
are a shape or a table of millions. What is too long to be a shape is hidden from it.
Source: ``DataPropagationContextImpl::getInputData`` and ``getShapeInput`` in onnx (1.23).
"""

from __future__ import annotations

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, helper

from onnx_multi_backend.adapt.hidden_integers import (
    follows_integers,
    hiding,
    restored,
    shown,
    too_long,
    without_long_constants,
)
from onnx_multi_backend.models import untyped
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.models.plausible import MOST_AXES, expands_too_far, implausible

#: Passes after which what is still hidden stays hidden.
_MOST_PASSES = 4

_FAILURES = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    ValueError,  # above 2 GB, or text that is not UTF-8
    RuntimeError,
)


def infer(model: ModelProto) -> ModelProto:
    """A copy of the model with the types of its values, as far as onnx can tell; the model itself where it is not to be asked."""
    if implausible(all_nodes(model)) is not None or expands_too_far(model):
        return model
    if untyped.may_crash(model):
        return untyped.restore(_inferred(untyped.without(model)))
    return _inferred(model)


def _inferred(model: ModelProto) -> ModelProto:
    visible, long = without_long_constants(model)
    typed = _asked(visible, data_prop=False)
    if typed is None:
        return model
    follows = not model.functions and follows_integers(visible.graph)
    typed = _with_shapes_followed(visible, typed) if follows else typed
    if ranks := _open_ranks(typed.graph):
        visible, typed = _with_ranks(visible, typed, ranks)
        typed = _with_shapes_followed(visible, typed) if follows else typed
    return restored(typed, model) if long else typed


def _with_ranks(model: ModelProto, typed: ModelProto, ranks: list[ValueInfoProto]) -> tuple[ModelProto, ModelProto]:
    """The model with these ranks declared, and others that come of them; and its types."""
    for _ in range(_MOST_PASSES):
        model = _declaring(model, ranks)
        typed = _asked(model, data_prop=False) or typed
        if not (ranks := _open_ranks(typed.graph)):
            break
    return model, typed


def _open_ranks(graph: GraphProto) -> list[ValueInfoProto]:
    """Results whose rank onnx leaves open where a run alone tells the other input.

    That of Reshape is as long as the new shape, and a reduction that keeps its axes keeps their number.
    """
    nodes = [n for n in graph.node if not n.domain and len(n.input) > 1 and (n.op_type == "Reshape" or _keeps_rank(n))]
    if not nodes:
        return []
    types = {v.name: v.type.tensor_type for v in (*graph.value_info, *graph.output, *graph.input)}
    types.update((t.name, helper.make_tensor_type_proto(t.data_type, t.dims).tensor_type) for t in graph.initializer)
    found = []
    for node in nodes:
        made, data = types.get(node.output[0]), types.get(node.input[0])
        if made is not None and made.HasField("shape"):
            continue
        rank = _length(types.get(node.input[1])) if node.op_type == "Reshape" else _rank(data)
        kind = made.elem_type if made is not None and made.elem_type else data.elem_type if data is not None else 0
        if kind and rank is not None and rank < MOST_AXES:
            found.append(helper.make_tensor_value_info(node.output[0], kind, [None] * rank))
    return found


def _keeps_rank(node: NodeProto) -> bool:
    return node.op_type.startswith("Reduce") and all(a.i for a in node.attribute if a.name == "keepdims")


def _rank(kind: TypeProto.Tensor | None) -> int | None:
    return len(kind.shape.dim) if kind is not None and kind.HasField("shape") else None


def _length(kind: TypeProto.Tensor | None) -> int | None:
    """How many elements a list has."""
    size = kind.shape.dim[0] if kind is not None and _rank(kind) == 1 else None
    return size.dim_value if size is not None and size.HasField("dim_value") and size.dim_value >= 0 else None


def _declaring(model: ModelProto, values: list[ValueInfoProto]) -> ModelProto:
    """A copy of the model that declares these values."""
    copy = ModelProto()
    copy.CopyFrom(model)
    declared = {value.name: value for value in (*copy.graph.value_info, *copy.graph.output)}
    for value in values:
        if value.name in declared:
            declared[value.name].type.CopyFrom(value.type)
        else:
            copy.graph.value_info.append(value)
    return copy


def is_valid(model: ModelProto) -> bool:
    """Whether onnx finds nothing wrong with the shapes in a model of one node: no rule is written for another.

    Types are not looked at: the node may stand in a newer opset's form in an older one that lacks its type. Where one is not
    known, nothing can be found.
    """
    if implausible(all_nodes(model)) is not None:
        return False
    if not all(value.type.WhichOneof("value") for value in model.graph.input) or untyped.may_crash(model):
        return True
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except _FAILURES:
        return False
    return True


def _asked(model: ModelProto, *, data_prop: bool) -> ModelProto | None:
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=data_prop)
    except _FAILURES:
        return None


def _with_shapes_followed(model: ModelProto, typed: ModelProto) -> ModelProto:
    """The types once integers are followed, where they are short enough: what that finds may let more be followed."""
    before: list[int] | None = None
    for _ in range(_MOST_PASSES):
        hidden = too_long(typed.graph)
        if hidden == before:
            break
        found = _asked(hiding(model, typed, set(hidden)) if hidden else model, data_prop=True)
        if found is None:
            break
        typed = shown(found) if hidden else found
        if not hidden:
            break
        before = hidden
    return typed
