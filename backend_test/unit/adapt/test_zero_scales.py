# SPDX-License-Identifier: Apache-2.0
"""DynamicQuantizeLinear of zeros, whose scale is 1 in ONNX, and 0 in OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
ZEROS = np.zeros_like(X)
QUANTIZED = "q, s, z = DynamicQuantizeLinear (x)"


@pytest.mark.parametrize("opset", [11, 13, 21])
@pytest.mark.parametrize("sizes", ["2, 3", "n, m"])
def test_the_scale_of_zeros_is_1(preset: type[omb.Preset], opset: int, sizes: str) -> None:
    prepared = preset.prepare(
        parsed(f"(float[{sizes}] x) => (uint8[{sizes}] q, float s, uint8 z) {{ {QUANTIZED} }}", opset)
    )
    for _ in range(2):
        quantized, scale, zero = prepared.run(ZEROS)
        np.testing.assert_array_equal(quantized, np.zeros((2, 3), np.uint8))
        assert (scale.item(), zero.item(), scale.shape) == (1, 0, ())
        np.testing.assert_allclose(prepared.run(X)[1], (X.max() - X.min()) / 255, rtol=1e-6)


@pytest.mark.parametrize(
    "nodes",
    ["t = Mul (s, half) y = Exp (t)", "y = Sqrt (s)", "u = Unsqueeze (s, first) y = Mul (u, half)", "y = Mul (s, s)"],
)
def test_what_is_computed_of_it(preset: type[omb.Preset], nodes: str) -> None:
    model = parsed(
        f"(float[2, 3] x) => (float[] y, uint8[2, 3] q) <float half = {{0.5}}, int64[1] first = {{0}}> {{ {QUANTIZED} {nodes} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    right = {"t": np.exp(0.5), "u": 0.5}.get(nodes[0], 1.0)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(ZEROS)[0].ravel(), right, rtol=1e-6)


@pytest.mark.parametrize(
    "nodes",
    [
        "p = MatMulInteger (q, w, z, v) c = Cast <to = 1> (p) t = Mul (s, half) y = Mul (c, t)",
        "d = DequantizeLinear (q, s, z) f = Cast <to = 1> (w) y = MatMul (d, f)",
    ],
)
def test_a_factor_of_what_is_quantized_is_left_as_it_is(openvino: type[omb.Preset], nodes: str) -> None:
    """As the dynamically quantized models of ONNX Runtime's tools have it."""
    model = parsed(
        f"""(float[n, 3] x) => (float[n, 2] y) <float half = {{0.5}}, uint8 v = {{0}}, uint8[3, 2] w = {{1, 2, 3, 4, 5, 6}}> {{
        {QUANTIZED} {nodes} }}"""
    )
    prepared = openvino.prepare(model)
    assert "scales_of_zeros" not in {change.pass_name for change in prepared.adaptations}
    np.testing.assert_array_equal(prepared.run(ZEROS)[0], np.zeros((2, 2)))


@pytest.mark.parametrize(
    "nodes",
    [
        "d = DequantizeLinear (o, s, z) y = Mul (d, half)",
        "p = MatMulInteger (o, w) c = Cast <to = 1> (p) t = Mul (s, half) y = Mul (c, t)",
    ],
)
def test_a_factor_of_something_else(preset: type[omb.Preset], nodes: str) -> None:
    model = parsed(
        f"""(float[n, 3] x, uint8[2, 2] o) => (float[2, 2] y, uint8[n, 3] q) <float half = {{0.5}}, uint8[2, 2] w = {{1, 0, 0, 1}}> {{
        {QUANTIZED} {nodes} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_array_equal(prepared.run([ZEROS, np.full((2, 2), 2, np.uint8)])[0], np.ones((2, 2)))
