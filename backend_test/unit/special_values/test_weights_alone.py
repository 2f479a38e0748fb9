# SPDX-License-Identifier: Apache-2.0
"""Where only the weights are quantized, what they are multiplied by is not, unless the engine may choose the precision."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

N = 256
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((4, N)).astype(np.float32)
#: The type of the weights, and their zero point.
KINDS = {TensorProto.INT8: 0, TensorProto.UINT8: 128, TensorProto.UINT4: 8}


def net(kind: int) -> tuple[ModelProto, np.ndarray]:
    """A product with quantized weights, and its result."""
    zero = KINDS[kind]
    largest = 7 if kind == TensorProto.UINT4 else 127
    weights = RANDOM.integers(-largest, largest + 1, (N, 64))
    given = [
        helper.make_tensor("w", kind, weights.shape, (weights + zero).ravel()),
        helper.make_tensor("scale", TensorProto.FLOAT, (), [0.01]),
        helper.make_tensor("zero", kind, (), [zero]),
    ]
    nodes = [
        models.node("DequantizeLinear", ["w", "scale", "zero"], ["floats"]),
        models.node("MatMul", ["x", "floats"], ["y"]),
    ]
    model = models.model(nodes, [models.tensor("x", [4, N])], [models.tensor("y", [4, 64])], opsets={"": 21})
    model.graph.initializer.extend(given)
    return model, X.astype(np.float64) @ (weights * np.float64(np.float32(0.01)))


@pytest.mark.parametrize("kind", KINDS, ids=TensorProto.DataType.Name)
def test_activations_are_not_quantized(kind: int, engine: type[omb.Preset]) -> None:
    model, expected = net(kind)
    np.testing.assert_allclose(engine.prepare(model).run([X])[0], expected, atol=1e-5 * np.abs(expected).max())


def test_the_user_may_have_them_quantized(engine: type[omb.Preset]) -> None:
    entries = {"session.qdq_matmulnbits_accuracy_level": "4"}
    options = {"session_options": entries} if engine.name == "OrtCpu" else {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "32"}
    model, expected = net(TensorProto.INT8)
    found = engine.prepare(model, **options).run([X])[0]
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())
