# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime's domain in the forms that its optimizer for transformers writes run on every preset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
SKIP = np.random.default_rng(1).normal(size=(2, 3, 8)).astype(np.float32)
GAMMA, BETA, BIAS = (np.random.default_rng(seed).normal(size=8).astype(np.float32) for seed in (2, 3, 4))


def contrib(
    op_type: str, inputs: list[str], outputs: list[str], given: list[Any], weights: dict[str, Any], **attributes: Any
) -> Any:
    """A model of one node of ONNX Runtime's domain."""
    node = helper.make_node(op_type, inputs, outputs, domain="com.microsoft", **attributes)
    results = [
        helper.make_tensor_value_info(name, given[0].type.tensor_type.elem_type, None) for name in outputs if name
    ]
    return models.model([node], given, results, initializers=weights, opsets={"": 17, "com.microsoft": 1})


@pytest.mark.parametrize("outputs", [["y"], ["y", "", "", "z"]])
@pytest.mark.parametrize("inputs", [["x", "s", "g"], ["x", "s", "g", "b"], ["x", "s", "g", "b", "c"]])
def test_skip_layer_normalization(preset: type[omb.Preset], inputs: list[str], outputs: list[str]) -> None:
    weights = {name: value for name, value in (("g", GAMMA), ("b", BETA), ("c", BIAS)) if name in inputs}
    given = [models.tensor(name, ["n", "m", 8]) for name in "xs"]
    model = contrib("SkipLayerNormalization", inputs, outputs, given, weights, epsilon=1e-5)
    total = X + SKIP + (BIAS if "c" in inputs else 0)
    normal = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
    right = [normal * GAMMA + (BETA if "b" in inputs else 0), total]
    for made, wanted in zip(preset.prepare(model, fallback="full").run([X, SKIP]), right, strict=False):
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_quick_gelu(preset: type[omb.Preset], dtype: Any) -> None:
    given = [models.tensor("x", ["n", "m", 8], helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))]
    model = contrib("QuickGelu", ["x"], ["y"], given, {}, alpha=1.5)
    (made,) = preset.prepare(model, fallback="full").run([X.astype(dtype)])
    assert made.dtype == dtype
    np.testing.assert_allclose(made.astype(np.float32), X / (1 + np.exp(-1.5 * X)), rtol=2e-3, atol=2e-3)
