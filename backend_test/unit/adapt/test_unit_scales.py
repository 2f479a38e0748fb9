# SPDX-License-Identifier: Apache-2.0
"""Quantized products with a bias, where the scales of both factors and of the result cancel each other out."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

PRODUCT = "g = MatMul (a, e)"
#: From the quantized values `a` and weights `e` to what is quantized again, `h`.
SUMS = {
    "a bias": f"{PRODUCT} h = Add (g, bias)",
    "the bias first": f"{PRODUCT} h = Add (bias, g)",
    "subtracted": f"{PRODUCT} h = Sub (g, bias)",
    "a Sum": f"{PRODUCT} h = Sum (g, bias)",
    "two sums": f"{PRODUCT} i = Add (g, bias) h = Add (i, bias)",
    "a Gemm": "h = Gemm (a, e, bias)",
    "an Einsum": 'g = Einsum <equation = "ab,bc->ac"> (a, e) h = Add (g, bias)',
    "a Clip behind it": f"{PRODUCT} i = Add (g, bias) h = Clip (i, low, high)",
    "an Identity behind it": f"{PRODUCT} i = Add (g, bias) h = Identity (i)",
    "no bias": "h = MatMul (a, e)",
}
#: The scales of the values, of the weights, and of the result.
SCALES = [(0.1, 0.5, 0.05), (0.5, 0.2, 0.1), (1, 1, 1), (0.05, 1, 0.05), (0.1, 0.5, 0.051)]


def _model(sums: str, scales: tuple[float, float, float], kind: str = "int8", by_column: bool = False) -> ModelProto:
    weights = ", ".join(map(str, np.random.default_rng(1).integers(-50, 50, 20)))
    values, each, result = scales
    columns = (
        f"float[5] t = {{{each}, {each * 2}, {each}, {each / 2}, {each}}}" if by_column else f"float t = {{{each}}}"
    )
    columns += f", int8{'[5]' if by_column else ''} m = {{{', '.join('0' * (5 if by_column else 1))}}}"
    zero = ", z" if kind else ""
    return parsed(
        f"""(float[3, 4] x) => (float[3, 5] y) <float s = {{{values}}}, {columns}, float u = {{{result}}}, {kind or "uint8"} z = {{0}}, int8 n = {{0}},
        float low = {{-1}}, float high = {{6}}, float[5] bias = {{0.88, 0.28, -0.5, -1.1, 0.9}}, int8[4, 5] k = {{{weights}}}> {{
        q = QuantizeLinear (x, s{zero}) a = DequantizeLinear (q, s{zero}) e = DequantizeLinear <axis = 1> (k, t, m) {sums}
        r = QuantizeLinear (h, u, n) y = DequantizeLinear (r, u, n) }}"""
    )


def _check(preset: type[omb.Preset], model: ModelProto, level: float) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    (made,) = preset.prepare(model).run([x])
    np.testing.assert_allclose(made, unoptimized(model, x)[0], atol=level * 1.01)


@pytest.mark.parametrize("sums", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("scales", SCALES)
def test_a_sum(preset: type[omb.Preset], sums: str, scales: tuple[float, float, float]) -> None:
    _check(preset, _model(sums, scales), scales[2])


@pytest.mark.parametrize("kind", ["int8", "uint8", ""])
@pytest.mark.parametrize("by_column", [False, True])
def test_other_types_and_scales(preset: type[omb.Preset], kind: str, by_column: bool) -> None:
    _check(preset, _model(SUMS["a bias"], SCALES[0], kind, by_column), SCALES[0][2])


@pytest.mark.parametrize(("sums", "scales"), [(SUMS["a bias"], SCALES[-1]), (SUMS["no bias"], SCALES[0])])
def test_what_is_right_stays_as_it_is(
    openvino: type[omb.Preset], sums: str, scales: tuple[float, float, float]
) -> None:
    changes = openvino.prepare(_model(sums, scales)).adaptations
    assert "sums_kept" not in {change.pass_name for change in changes}
