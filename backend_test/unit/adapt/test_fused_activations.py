# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's optimizer makes of Conv or Gemm and an activation comes out right on OpenVINO."""

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


PARAMETERS = {"LeakyRelu": [0.25], "HardSigmoid": [0.25, 0.5], "Clip": [-0.5, 0.75]}


@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize("activation", ["", "Clip", *sorted(RIGHT.keys() - {"Softplus"})])
def test_conv_with_an_activation(engine: type[omb.Preset], activation: str, *, added: bool) -> None:
    options: dict[str, Any] = {"kernel_shape": [1], **({"activation": activation} if activation else {})}
    if activation in PARAMETERS:
        options["activation_params"] = PARAMETERS[activation]
    made = models.model(
        [helper.make_node("FusedConv", ["x", "w", "b", *["z"] * added], ["y"], domain="com.microsoft", **options)],
        [models.tensor("x", ["n", 4, 5]), *[models.tensor("z", ["n", 3, 5])] * added],
        [models.tensor("y", ["n", 3, 5])],
        initializers={"w": W[..., None], "b": B},
        opsets={"": 17, "com.microsoft": 1},
    )
    x, z = (GENERATOR.normal(size=(2, channels, 5)).astype(np.float32) for channels in (4, 3))
    total = np.einsum("oc,ncl->nol", W, x) + B[:, None] + (z if added else 0)
    right = {**RIGHT, "": lambda y: y, "Clip": lambda y: np.clip(y, -0.5, 0.75)}[activation](total)
    given = [x, z] if added else [x]
    np.testing.assert_allclose(engine.prepare(made).run(given)[0], right, rtol=1e-4, atol=1e-5)
