# SPDX-License-Identifier: Apache-2.0
"""Random models, in every opset from 7 on, against ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import expected

pytest.importorskip("onnxruntime")

TYPES = ("float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
FLOATS = ("float32", "float16", "float64")
UNARY = ("Abs", "Neg", "Identity", "Sign")
UNARY_FLOAT = ("Relu", "Sigmoid", "Floor", "Exp", "Softplus")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
SHAPES = ([2, 3], [3], [0, 3], [2, 1], [])


def _allowed(op_type: str, opset: int, dtype: str) -> bool:
    schema = onnx.defs.get_schema(op_type, opset, "")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    word = f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"
    return any(word in constraint.allowed_type_strs for constraint in schema.type_constraints)


@st.composite
def graphs(draw: Any) -> tuple[ModelProto, list[np.ndarray]]:
    opset = draw(st.integers(7, onnx.defs.onnx_opset_version()))
    dtype = draw(st.sampled_from(TYPES))
    # ONNX Runtime's vectorized Max and Min of int64 are wrong beyond int32, so values stay small.
    values = [0, 1, 2, 3, 7, 100] if dtype.startswith("u") else [-100, -3, -1, 0, 1, 2, 100]
    if dtype in FLOATS:
        values = [*values, 0.5, np.inf, -np.inf, np.nan]
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=2))
    arrays = [
        np.array(
            draw(st.lists(st.sampled_from(values), min_size=int(np.prod(s)), max_size=int(np.prod(s)))), dtype
        ).reshape(s)
        for s in shapes
    ]
    nodes, known = [], ["x0", "x1"]
    for i in range(draw(st.integers(1, 4))):
        choices = [*UNARY, *BINARY, *(UNARY_FLOAT if dtype in FLOATS else ())]
        choices = [c for c in choices if onnx.defs.has(c) and _since(c) <= opset and _allowed(c, opset, dtype)]
        op_type = draw(st.sampled_from(choices))
        inputs = [draw(st.sampled_from(known)) for _ in range(2 if op_type in BINARY else 1)]
        nodes.append(helper.make_node(op_type, inputs, [f"v{i}"]))
        known.append(f"v{i}")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [models.tensor(f"x{i}", a.shape, kind) for i, a in enumerate(arrays)]
    graph = helper.make_graph(nodes, "random", infos, [models.tensor(known[-1], None, kind)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), arrays


def _since(op_type: str) -> int:
    return min(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op_type and not s.domain)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graphs())
def test_random_graphs(made: tuple[ModelProto, list[np.ndarray]]) -> None:
    model, arrays = made
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return  # shapes that do not broadcast
    right = expected(model, *arrays)[0]
    result = omb.OrtCpuBackend.prepare(model).run(arrays)[0]
    assert result.dtype == right.dtype
    assert result.shape == np.shape(right)
    if result.dtype == np.float16:  # the reference rounds after each node, a wider type once
        np.testing.assert_allclose(result.astype(np.float64), right.astype(np.float64), rtol=2e-2, atol=1e-2)
    else:
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-6)
