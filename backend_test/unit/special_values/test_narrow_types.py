# SPDX-License-Identifier: Apache-2.0
"""Casts to float8 and float4 and back, of every special value, on every preset and processor."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.special_values.values import NARROW, same, vector

TYPES = ["FLOAT4E2M1", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]


def expected(x: np.ndarray, kind: int, *, saturate: bool) -> np.ndarray:
    """As ONNX's reference has it; float4 has no NaN, and its -0 stands for a NaN of either sign."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    with np.errstate(all="ignore"):
        if kind == TensorProto.FLOAT4E2M1:
            return np.where(np.isnan(x), np.float32(-0.0), x.astype(np.float32)).astype(dtype)
        return numpy_helper.saturate_cast(x.astype(np.float32), dtype) if saturate else x.astype(dtype)


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("back", [False, True], ids=["as an output", "and back"])
def test_cast(engine: type[omb.Preset], to: str, saturate: int, source: str, back: bool) -> None:
    kind, x = TensorProto.DataType.Value(to), vector(NARROW, getattr(ml_dtypes, source, source))
    nodes = [models.node("Cast", ["x"], ["narrow"], to=kind, saturate=saturate, name="there")]
    if back:
        nodes.append(models.node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT, name="back"))
    outputs = [models.tensor("y", [None]) if back else models.tensor("narrow", [None], kind)]
    inputs = [models.tensor("x", [None], helper.np_dtype_to_tensor_dtype(x.dtype))]
    model = models.model(nodes, inputs, outputs, opsets={"": 23}, ir_version=11)
    got, right = engine.prepare(model).run(x)[0], expected(x, kind, saturate=bool(saturate))
    agree = same(got.astype(np.float32), right.astype(np.float32), rtol=0, zeros=True)
    assert agree.all(), [*zip(x[~agree].tolist(), got[~agree].tolist(), right[~agree].tolist(), strict=True)][:9]


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_cast_of_nothing(engine: type[omb.Preset], to: str) -> None:
    """ONNX Runtime (1.24) reduces along no axis then, where that is counted from the end."""
    kind = TensorProto.DataType.Value(to)
    nodes = [models.node("Cast", ["x"], ["y"], to=kind, saturate=0)]
    inputs, outputs = [models.tensor("x", [None, 3])], [models.tensor("y", [None, 3], kind)]
    rep = engine.prepare(models.model(nodes, inputs, outputs, opsets={"": 23}, ir_version=11))
    for rows in (0, 2, 0):
        (got,) = rep.run(np.ones((rows, 3), np.float32))
        assert got.dtype == helper.tensor_dtype_to_np_dtype(kind)
        np.testing.assert_array_equal(got.astype(np.float32), np.ones((rows, 3), np.float32))


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("saturate", [1, 0])
def test_quantize_and_dequantize(engine: type[omb.Preset], to: str, saturate: int) -> None:
    kind, x = TensorProto.DataType.Value(to), vector(NARROW)
    scale = {"scale": np.float32(0.5), "zero": np.zeros((), helper.tensor_dtype_to_np_dtype(kind))}
    nodes = [
        models.node("QuantizeLinear", ["x", "scale", "zero"], ["q"], saturate=saturate),
        models.node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    inputs, outputs = [models.tensor("x", [None])], [models.tensor("y", [None])]
    model = models.model(nodes, inputs, outputs, initializers=scale, opsets={"": 23}, ir_version=11)
    with np.errstate(all="ignore"):
        right = expected(x / np.float32(0.5), kind, saturate=bool(saturate)).astype(np.float32) * np.float32(0.5)
    got = engine.prepare(model).run(x)[0]
    agree = same(got, right, rtol=0)
    assert agree.all(), [*zip(x[~agree].tolist(), got[~agree].tolist(), right[~agree].tolist(), strict=True)][:9]
