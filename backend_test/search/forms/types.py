# SPDX-License-Identifier: Apache-2.0
"""A model of float32 in another type, where its operators have it; ONNX's evaluator tells what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from backend_test.search import evaluator, judge
from backend_test.search.forms.case import Case, copied, holds_graphs, is_array, opset
from onnx_multi_backend.models.graph_walk import all_nodes

FLOATS = (TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
#: The first opset whose operators have most types.
_SINCE = 13
#: Attributes that name a type, or hold numbers whose type the operator does not take from its inputs.
_TYPED = frozenset(("to", "dtype", "stash_type", "output_dtype", "value_float", "value_floats"))
#: What draws numbers.
_RANDOM = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)
#: By how many times the tolerance of float32 a result in another type may differ.
_NEAR = 200.0
#: What keeps the integers of a case apart: its floats are mostly between -3 and 3.
_TIMES = 10


def in_type(dtype: int) -> Callable[[Case], Case | None]:
    """What puts a case into a type."""

    def put(case: Case) -> Case | None:
        if opset(case.model) < _SINCE or holds_graphs(case.model) or evaluator.errs(case.model):
            return None
        if any(n.op_type in _RANDOM or any(a.name in _TYPED for a in n.attribute) for n in all_nodes(case.model)):
            return None
        floats = [v.name for v in case.model.graph.input if v.type.tensor_type.elem_type == TensorProto.FLOAT]
        if not floats or not all(map(is_array, case.feeds.values())):
            return None
        made = _retyped(case.model, dtype)
        feeds = {n: _array(x, dtype) if n in floats else x for n, x in case.feeds.items()}
        # What is infinite in the type only is not what the case is about.
        finite = (
            all(np.isfinite(case.feeds[n]).all() == np.isfinite(feeds[n]).all() for n in floats)
            if dtype in FLOATS
            else True
        )
        return Case(made, feeds, None) if finite and _is_valid(made) else None

    return put


def _retyped(model: ModelProto, dtype: int) -> ModelProto:
    made = copied(model)
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = dtype
    attributes = (a.t for node in made.graph.node for a in node.attribute if a.HasField("t"))
    for tensor in (*made.graph.initializer, *attributes):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(_array(numpy_helper.to_array(tensor), dtype), tensor.name))
    return made


def _array(array: Any, dtype: int) -> Any:
    """Floats in another type: rounded, or ten times as integers, which wrap, or such an integer's digits."""
    to = helper.tensor_dtype_to_np_dtype(dtype)
    with np.errstate(all="ignore"):
        if dtype == TensorProto.STRING:
            return np.array([str(x) for x in np.rint(array * _TIMES).ravel()], object).reshape(array.shape)
        if to.kind not in "iu":
            return array.astype(to)
        whole = np.rint(np.nan_to_num(array * _TIMES, posinf=100, neginf=-100)).clip(-(2**31), 2**31 - 1)
        return whole.astype(np.int64).astype(to)


def _is_valid(model: ModelProto) -> bool:
    """Whether the operators have the type."""
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def are_right(model: ModelProto, results: list[Any], case: list[Any]) -> bool:
    """Whether the evaluator has the declared types, and near float32's results of the case if these are floats."""
    for value, x, y in zip(model.graph.output, results, case, strict=True):
        dtype = value.type.tensor_type.elem_type
        if not is_array(x) or x.dtype != helper.tensor_dtype_to_np_dtype(dtype):
            return False
        if dtype in FLOATS and not (
            y.shape == x.shape and judge.agree(y.astype(np.float32), x.astype(np.float32), slack=_NEAR)
        ):
            return False
    return True
