# SPDX-License-Identifier: Apache-2.0
"""A convolution with a bias, quantized behind it, where a run alone tells another size: OpenVINO loses the bias, without a word."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

BIAS = np.float32([3, -2, 1])
CONSTANTS = """float[3, 1, 1, 1] w = {1, 2, -1}, float[3] b = {3, -2, 1}, int8[3, 1, 1, 1] wq = {10, 20, -10}, int32[3] bq = {300, -200, 100},
float t = {0.1}, float h = {0.01}, float s = {0.05}, uint8 z = {100}, int64[1] first = {0}, float one = {1}, float[5] row = {1, 2, 3, 4, 5}"""
WEIGHTS = {
    "floats": "c = Conv (x, w, b)",
    "quantized": "v = DequantizeLinear (wq, t) a = DequantizeLinear (bq, h) c = Conv (x, v, a)",
}
SIZES = {
    "ConstantOfShape": "k = ConstantOfShape (n)",
    "Expand": "k = Expand (one, n)",
    "Slice": "k = Slice (row, first, n)",
    "Tile": "k = Tile (row, n)",
}


@pytest.mark.parametrize("activation", ["Identity", "Relu"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_bias_counts(preset: type[omb.Preset], weights: str, size: str, activation: str) -> None:
    model = parsed(
        f"""(float[batch, 1, 4, width] x) => (float[p, q, r, o] y, float[m] k) <{CONSTANTS}> {{
            {WEIGHTS[weights]}  d = {activation} (c)  e = QuantizeLinear (d, s, z)  f = DequantizeLinear (e, s, z)  y = Abs (f)
            g = Shape (x)  n = Gather (g, first)  {SIZES[size]} }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 1, 4, 6)).astype(np.float32)
    made = x * np.float32([1, 2, -1]).reshape(1, 3, 1, 1) + BIAS.reshape(1, 3, 1, 1)
    made = np.maximum(made, 0) if activation == "Relu" else made
    right = np.abs((np.clip(np.rint(made / 0.05) + 100, 0, 255) - 100) * 0.05)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], right, atol=0.051)


def test_the_state_of_an_lstm_is_such_a_size(preset: type[omb.Preset]) -> None:
    """Which OpenVINO makes of the batch where the model names none."""
    rng = np.random.default_rng(1)
    weights = ", ".join(
        f"float[{', '.join(map(str, shape))}] {name} = {{{', '.join(f'{v:.3f}' for v in rng.normal(size=shape).ravel())}}}"
        for name, shape in (("lw", (1, 8, 3)), ("lr", (1, 8, 2)))
    )
    model = parsed(
        f"""(float[batch, 1, 1, width] x) => (float[p, q, r, o] y, float[s1, s2, s3, s4] states) <{CONSTANTS}, {weights}, int64[1] third = {{2}}> {{
            c = Conv (x, w, b)  e = QuantizeLinear (c, s, z)  f = DequantizeLinear (e, s, z)  y = Abs (f)
            g = Squeeze (f, third)  i = Transpose <perm = [2, 0, 1]> (g)  states = LSTM <hidden_size = 2> (i, lw, lr) }}"""
    )
    x = rng.normal(size=(2, 1, 1, 6)).astype(np.float32)
    made = x * np.float32([1, 2, -1]).reshape(1, 3, 1, 1) + BIAS.reshape(1, 3, 1, 1)
    right = np.abs((np.clip(np.rint(made / 0.05) + 100, 0, 255) - 100) * 0.05)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], right, atol=0.051)
