# SPDX-License-Identifier: Apache-2.0
"""Models of float64 in which something may be infinite, written in float32.

OpenVINO (2026.4) computes float64 in float32, and clamps infinite constants where it converts a model: a mask of -inf lets through what it
is to hide. Written in float32 from the beginning, infinities stay. What is computed of constants and shapes alone is folded in float64 before:
a model stays as it is where float32 might give another integer, comparison or number of elements there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TypeProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.engines.openvino.mends.doubles import has_doubles
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.external_data import load_values
from onnx_multi_backend.models.graph_walk import all_tensors, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far
from onnx_multi_backend.models.tensors import is_whole

_T = TensorProto
_FLOATS = frozenset({_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16})
#: Attributes that name a type by its number.
_NAMING = frozenset({"dtype", "output_datatype", "output_dtype", "stash_type", "to"})
#: What is computed with an infinity, though no constant is infinite.
_EXTREMES = frozenset({"Attention", "ReduceLogSumExp", "ReduceMax", "ReduceMin"})
#: Of other types than float64, more elements than these are weights.
_MOST = 1 << 16
#: What float64 and float32 may not agree about: other operators give nearly the same.
_DISCRETE = frozenset(
    {
        *("Cast", "CastLike", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "IsInf", "Less", "LessOrEqual"),
        *("Mod", "Range", "Resize", "Round", "Sign"),
    }
)
_LARGEST = float(np.finfo(np.float32).max)


def may_be_clamped(contents: Contents, path: Path | None) -> bool:
    """Whether a model has values of float64, and maybe an infinity among them; `path` is its file."""
    if not has_doubles(contents) or contents.has({"BitCast"}):
        return False
    return (
        contents.has(_EXTREMES)
        or any(_is_infinite(tensor, path) for tensor in contents.tensors)
        or _names_infinity(contents)
    )


def in_single(model: ModelProto, path: Path | None) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of a model with float32 for float64; the model itself where inputs or results are of float64, or that would change more than digits.

    Numbers beyond float32 become its largest.
    """
    if expands_too_far(model):
        return model, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    defaults = {tensor.name for tensor in copy.graph.initializer}  # which OpenVINO fixes
    given = (value for value in (*copy.graph.input, *copy.graph.output) if value.name not in defaults)
    if copy.functions or any(_holds_double(value.type) for value in given):
        return model, ()
    typed = infer(copy)
    if typed is copy or _may_fold_otherwise(typed.graph, {}, set()):
        return model, ()
    for tensor in all_tensors(copy):
        if tensor.data_type != _T.DOUBLE:
            continue
        numbers = _numbers(tensor, path)
        if numbers is None:
            return model, ()
        small = np.where(np.isfinite(numbers), np.clip(numbers, -_LARGEST, _LARGEST), numbers).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(small, tensor.name))
    _name_float(copy.graph)
    reason = "OpenVINO computes float64 in float32, and clamps infinities where it converts constants"
    return copy, (Adaptation("single_precision", "", "written in float32", reason),)


def _may_fold_otherwise(graph: GraphProto, outer: Mapping[str, int], outer_known: Collection[str]) -> bool:
    """Whether a graph with inferred types, or a body in it, has a node of constants and shapes that may give something else in float32."""
    kinds = dict(outer) | {tensor.name: tensor.data_type for tensor in graph.initializer}
    values = (*graph.input, *graph.output, *graph.value_info)
    kinds |= {v.name: v.type.tensor_type.elem_type for v in values if v.type.HasField("tensor_type")}
    known = {*outer_known, *(tensor.name for tensor in graph.initializer)}
    for node in graph.node:
        if any(_may_fold_otherwise(inner, kinds, known) for inner in subgraphs(node)):
            return True
        folded = node.op_type in ("Constant", "Shape", "Size") or known.issuperset(filter(None, node.input))
        if not folded or next(subgraphs(node), None) is not None:
            continue
        known.update(node.output)
        reads_double = any(kinds.get(name, _T.DOUBLE) == _T.DOUBLE for name in node.input if name)
        to_float = node.op_type == "Cast" and any(a.i in _FLOATS for a in node.attribute if a.name == "to")
        if node.op_type in _DISCRETE and reads_double and not to_float:
            return True
    return False


def _name_float(graph: GraphProto) -> None:
    """Have all types that a graph names be float32 for float64."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        _to_float(value.type)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _NAMING and attribute.i == _T.DOUBLE:
                attribute.i = _T.FLOAT
            if attribute.type == AttributeProto.TYPE_PROTO:
                _to_float(attribute.tp)
        for inner in subgraphs(node):
            _name_float(inner)


def _innermost(kind: TypeProto) -> TypeProto:
    while (holder := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, holder).elem_type
    return kind


def _holds_double(kind: TypeProto) -> bool:
    return bool(_innermost(kind).tensor_type.elem_type == _T.DOUBLE)


def _to_float(kind: TypeProto) -> None:
    if _holds_double(kind):
        _innermost(kind).tensor_type.elem_type = _T.FLOAT


def _is_infinite(tensor: TensorProto, path: Path | None) -> bool:
    if tensor.data_type not in _FLOATS or (tensor.data_type != _T.DOUBLE and math.prod(tensor.dims) > _MOST):
        return False
    numbers = _numbers(tensor, path)
    return numbers is not None and bool(np.isinf(numbers.astype(np.float64)).any())


def _numbers(tensor: TensorProto, path: Path | None) -> np.ndarray[Any, Any] | None:
    """The values of a tensor; None where they lie in a file that is not known, or are not as many as it says."""
    if not is_whole(tensor) and path is not None:
        loaded = TensorProto()
        loaded.CopyFrom(tensor)
        load_values(loaded, path)
        tensor = loaded
    return numpy_helper.to_array(tensor) if is_whole(tensor) else None


def _names_infinity(contents: Contents) -> bool:
    """Whether a Constant has an infinity in an attribute of its own."""
    attributes = (a for node in contents.of("Constant") for a in node.attribute)
    return any(np.isinf(a.f) or np.isinf(a.floats).any() for a in attributes if a.name.startswith("value_float"))
