# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's optimizer makes of Gemm and an activation comes out right on OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnx_multi_backend as omb
from backend_test.unit import models

GENERATOR = np.random.default_rng(0)
W, B = GENERATOR.normal(size=(3, 4)).astype(np.float32), GENERATOR.normal(size=3).astype(np.float32)
RIGHT: dict[str, Any] = {
    "Relu": lambda y: np.maximum(y, 0),
    "LeakyRelu": lambda y: np.where(y < 0, 0.25 * y, y),
    "Tanh": np.tanh,
    "Sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "HardSigmoid": lambda y: np.clip(0.25 * y + 0.5, 0, 1),
    "Softplus": lambda y: np.log1p(np.exp(y)),
}
ATTRIBUTES = {
    "LeakyRelu": {"activation_alpha": 0.25},
    "HardSigmoid": {"activation_alpha": 0.25, "activation_beta": 0.5},
}


@pytest.mark.parametrize("activation", RIGHT)
def test_gemm_with_an_activation(engine: type[omb.Preset], activation: str) -> None:
    given = {"activation": activation, "transB": 1, "alpha": 0.5, **ATTRIBUTES.get(activation, {})}
    made = models.model(
        [helper.make_node("FusedGemm", ["x", "w", "b"], ["y"], domain="com.microsoft", **given)],
        [models.tensor("x", ["n", 4])],
        [models.tensor("y", ["n", 3])],
        initializers={"w": W, "b": B},
        opsets={"": 17, "com.microsoft": 1},
    )
    prepared = engine.prepare(made)
    for rows in (2, 5):
        x = GENERATOR.normal(size=(rows, 4)).astype(np.float32)
        right = RIGHT[activation](0.5 * x @ W.T + B)
        np.testing.assert_allclose(prepared.run(x)[0], right, rtol=1e-5, atol=1e-6)
