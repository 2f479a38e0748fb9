# SPDX-License-Identifier: Apache-2.0
"""Models of float64 in which something may be infinite, written in float32.

OpenVINO (2026.4) computes float64 in float32, and clamps infinite constants where it converts a model: a mask of -inf lets through what it
is to hide. Written in float32 from the beginning, infinities stay. Other models keep their constants of float64, which are folded in that.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.external_data import load_from
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
#: More elements than these are weights.
_MOST = 1 << 16
_LARGEST = float(np.finfo(np.float32).max)


def may_be_clamped(facts: Facts) -> bool:
    """Whether a model may have values of float64, and an infinity among them."""
    contents = facts.contents
    if not facts.may_hold_doubles or contents.has({"BitCast"}):
        return False
    return contents.has(_EXTREMES) or any(map(_is_infinite, contents.tensors)) or _names_infinity(contents)


def in_single(model: ModelProto, folder: Path | None) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of a model with float32 for float64, but for one whose inputs or results are of float64; that is returned as it is.

    Numbers beyond float32 become its largest.
    """
    if expands_too_far(model):
        return model, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    if copy.functions or any(_holds_double(value.type) for value in (*copy.graph.input, *copy.graph.output)):
        return model, ()
    found = [tensor for tensor in all_tensors(copy) if tensor.data_type == _T.DOUBLE]
    for tensor in found:
        if tensor.data_location == _T.EXTERNAL:
            if folder is None:
                return model, ()
            load_from(folder, tensor)
        numbers = numpy_helper.to_array(tensor)
        finite = np.isfinite(numbers)
        small = np.where(finite, np.clip(numbers, -_LARGEST, _LARGEST), numbers).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(small, tensor.name))
    _name_float(copy.graph)
    reason = "OpenVINO computes float64 in float32, and clamps infinities where it converts constants"
    return copy, (Adaptation("single_precision", "", "written in float32", reason),)


def _name_float(graph: GraphProto) -> None:
    """Have all types that a graph names be float32 for float64."""
    _of_values((*graph.input, *graph.output, *graph.value_info))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _NAMING and attribute.i == _T.DOUBLE:
                attribute.i = _T.FLOAT
            if attribute.type == AttributeProto.TYPE_PROTO:
                _to_float(attribute.tp)
        for inner in subgraphs(node):
            _name_float(inner)


def _of_values(values: Iterable[ValueInfoProto]) -> None:
    for value in values:
        _to_float(value.type)


def _innermost(kind: TypeProto) -> TypeProto:
    while (holder := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, holder).elem_type
    return kind


def _holds_double(kind: TypeProto) -> bool:
    return bool(_innermost(kind).tensor_type.elem_type == _T.DOUBLE)


def _to_float(kind: TypeProto) -> None:
    if _holds_double(kind):
        _innermost(kind).tensor_type.elem_type = _T.FLOAT


def _is_infinite(tensor: TensorProto) -> bool:
    if tensor.data_type not in _FLOATS or not is_whole(tensor):
        return False
    numbers = numpy_helper.to_array(tensor)
    return numbers.size <= _MOST and bool(np.isinf(numbers.astype(np.float64)).any())


def _names_infinity(contents: Contents) -> bool:
    """Whether a Constant has an infinity in an attribute of its own."""
    attributes = (a for node in contents.of("Constant") for a in node.attribute)
    return any(np.isinf(a.f) or np.isinf(a.floats).any() for a in attributes if a.name.startswith("value_float"))
