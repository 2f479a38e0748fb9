# SPDX-License-Identifier: Apache-2.0
"""Optimizers of ONNX Runtime that round what the model does not round, leave out a rounding of it, or turn a matrix that stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

X = np.random.default_rng(0).integers(0, 255, (2, 4, 3, 3)).astype(np.uint8)
WEIGHTS = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)
LISTED = ", ".join(map(repr, WEIGHTS.ravel().tolist()))


@pytest.mark.parametrize("written", ["float[4, 4, 1, 1] w = {%s}", ""])
def test_float_weights_stay_floats(ort_cpu: type[omb.Preset], written: str) -> None:
    """The result of the convolution is an output of the model too."""
    constant = "" if written else f"f = Constant <value_floats = [{LISTED}]> () w = Reshape (f, shape)"
    stored = ", " + written.replace("%s", LISTED) if written else ", int64[4] shape = {4, 4, 1, 1}"
    model = parsed(
        f"""(uint8[n, 4, 3, 3] x) => (float[a, b, c, d] v, uint8[a, b, c, d] y) <float s = {{0.05}}, uint8 z = {{0}}{stored}>
        {{ d0 = DequantizeLinear (x, s, z) {constant} v = Conv (d0, w) y = QuantizeLinear (v, s, z) }}"""
    )
    made = ort_cpu.prepare(model).run(X)[0]
    right = np.einsum("oc,ncij->noij", WEIGHTS, X * np.float32(0.05))
    np.testing.assert_allclose(made, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "between", ["b = Identity (d)", "t0 = Transpose (d) b = Transpose (t0)", "b = Reshape (d, same)"]
)
def test_each_scale_rounds(ort_cpu: type[omb.Preset], between: str) -> None:
    model = parsed(
        f"""(float[n, 4] x) => (float[m, k] y) <float s = {{0.015625}}, float t = {{0.02}}, uint8 z = {{128}}, int64[2] same = {{0, 4}}> {{
        a = QuantizeLinear (x, s, z) d = DequantizeLinear (a, s, z) {between} c = QuantizeLinear (b, t, z) y = DequantizeLinear (c, t, z) }}"""
    )
    x = np.linspace(-1, 1, 100, dtype=np.float32).reshape(-1, 4)
    once = np.rint(x / 0.015625) * 0.015625
    np.testing.assert_allclose(ort_cpu.prepare(model).run(x)[0], np.rint(once / 0.02) * 0.02, atol=1e-6)


@pytest.mark.parametrize("opset", [13, 20, 21])
@pytest.mark.parametrize(
    "nodes",
    [
        "t = Transpose <perm = [0, 1]> (w) y = Gemm <transB = 1> (x, t)",
        "t = Transpose <perm = [0, 1]> (x) y = Gemm <transB = 1> (t, w)",
        "t = Gemm <transB = 1> (x, w) y = Transpose <perm = [0, 1]> (t)",
    ],
)
def test_a_matrix_that_is_not_turned(ort_cpu: type[omb.Preset], nodes: str, opset: int) -> None:
    model = parsed(f"(float[2, 2] x) => (float[a, b] y) <float[2, 2] w = {{5, 7, 11, 13}}> {{ {nodes} }}", opset)
    x, w = np.float32([[1, 2], [3, 4]]), np.float32([[5, 7], [11, 13]])
    np.testing.assert_array_equal(ort_cpu.prepare(model).run(x)[0], x @ w.T)


@pytest.mark.parametrize("made", ["Add (x, x)", "DequantizeLinear <axis = 1> (w, each)"])
def test_an_output_before_a_transpose_is_not_quantized(preset: type[omb.Preset], made: str) -> None:
    """What is behind the Transpose is; the output was rounded and limited too."""
    model = parsed(
        f"""(float[2, 3, 4] x, int8[2, 3, 4] w) => (float[2, 3, 4] v, float[2, 4, 3] y) <float s = {{0.02}}, uint8 z = {{128}}, float[3] each = {{1, 2, 3}}>
        {{ v = {made} t = Transpose <perm = [0, 2, 1]> (v) q = QuantizeLinear (t, s, z) y = DequantizeLinear (q, s, z) }}"""
    )
    x, w = np.linspace(-9, 9, 24, dtype=np.float32).reshape(2, 3, 4), np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    right = x * 2 if "Add" in made else w * np.float32([1, 2, 3])[:, None]
    made_of = preset.prepare(model, fallback="full").run([x, w])
    np.testing.assert_allclose(made_of[0], right, rtol=1e-6)
    np.testing.assert_allclose(made_of[1], np.clip(right, -2.56, 2.54).transpose(0, 2, 1), atol=0.011)
