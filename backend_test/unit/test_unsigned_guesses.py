# SPDX-License-Identifier: Apache-2.0
"""What is dequantized and then moved keeps its sign, where ONNX Runtime would quantize it again."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

RNG = np.random.default_rng(7)
WEIGHTS = ", ".join(map(str, RNG.integers(-20, 20, 16)))
NUMBERS = ", ".join(f"{v:.3f}" for v in RNG.normal(size=16))
#: What is between the DequantizeLinear and what computes.
MOVED = {
    "Transpose": "e = Transpose (d) y = MatMul (e, m)",
    "Reshape": "e = Reshape (d, sizes) y = MatMul (e, m)",
    "Flatten and Transpose": "f = Flatten (d) e = Transpose (f) y = Add (e, m)",
    "an output": "y = Transpose (d)",
}


@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("quantizing", [False, True])
def test_inputs_keep_their_sign(preset: type[omb.Preset], moved: str, opset: int, zero: bool, quantizing: bool) -> None:
    given = "s, i" if zero else "s"
    more, beside = (", uint8[a, b] v", " v = QuantizeLinear (y, s, u)") if quantizing else ("", "")
    check(
        preset,
        f"""(int8[n, 4] x) => (float[a, b] y{more}) <float s = {{0.05}}, int8 i = {{0}}, uint8 u = {{128}}, int64[2] sizes = {{0, 4}},
        float[4, 4] m = {{{NUMBERS}}}> {{ d = DequantizeLinear (x, {given}) {MOVED[moved]}{beside} }}""",
        opset,
        RNG.integers(-100, 100, (4, 4)).astype(np.int8),
    )


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("scales", ["float s = {0.05}", "float[4] s = {0.05, 0.02, 0.04, 0.03}"])
@pytest.mark.parametrize("quantizing", [False, True])
def test_weights_keep_their_sign(preset: type[omb.Preset], opset: int, scales: str, quantizing: bool) -> None:
    more, beside = (", uint8[a, b] v", " v = QuantizeLinear (y, t, u)") if quantizing else ("", "")
    check(
        preset,
        f"""(float[n, 4] x) => (float[a, b] y{more}) <{scales}, float t = {{0.05}}, uint8 u = {{128}}, int8[4, 4] w = {{{WEIGHTS}}}> {{
        d = DequantizeLinear (w, s) e = Transpose (d) y = MatMul (x, e){beside} }}""",
        opset,
        RNG.normal(size=(3, 4)).astype(np.float32),
    )


def check(preset: type[omb.Preset], graph: str, opset: int, x: np.ndarray) -> None:
    model = parsed(graph, opset)
    right = unoptimized(model, x)
    made = preset.prepare(model, fallback="full").run(x)
    np.testing.assert_allclose(made[0], right[0], rtol=1e-3, atol=1e-3)
    for quantized, wanted in zip(made[1:], right[1:], strict=True):
        np.testing.assert_allclose(quantized.astype(float), wanted.astype(float), atol=1)


def test_what_is_quantized_again_stays(ort_cpu: type[omb.Preset]) -> None:
    model = parsed(
        """(float[n, 4] x) => (float[a, b] y) <float s = {0.05}, int8 i = {0}> { q = QuantizeLinear (x, s, i) d = DequantizeLinear (q, s, i)
        t = Transpose (d) r = QuantizeLinear (t, s, i) y = DequantizeLinear (r, s, i) }""",
        21,
    )
    assert "signed_apart" not in {change.pass_name for change in ort_cpu.prepare(model).adaptations}
