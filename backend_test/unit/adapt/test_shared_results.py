# SPDX-License-Identifier: Apache-2.0
"""Quantized convolutions whose result is read by one node that is written with several: OpenVINO computed one of them in its place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

FILTERS = np.float32([[18, 9, -2], [13, -7, -8], [8, -2, -11]]) * np.float32(0.04)


def _convolved(
    preset: type[omb.Preset], sizes: str, results: str, behind: str
) -> tuple[omb.PreparedModel, np.ndarray, np.ndarray]:
    """The prepared model, what it is given, and the result of its convolution."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{sizes}] x) => ({results})
            <float s = {{0.05}}, uint8 z = {{128}}, float t = {{0.04}}, int8 o = {{0}}, int8[3, 3, 1, 1] w = {{18, 9, -2, 13, -7, -8, 8, -2, -11}}> {{
            q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) f = DequantizeLinear (w, t, o)
            c = Conv (d, f) {behind} }}"""
    )
    x = np.random.default_rng(1).normal(size=(2, 3, 3, 3)).astype(np.float32)
    return preset.prepare(model, fallback="full"), x, np.einsum("nchw,fc->nfhw", np.rint(x / 0.05) * 0.05, FILTERS)


@pytest.mark.parametrize("sizes", ["n, 3, 3, 3", "2, 3, 3, 3"])
@pytest.mark.parametrize(
    ("operator", "reduce"),
    [("ReduceSumSquare", lambda c, axes: (c**2).sum(axes)), ("ReduceMax", np.max), ("ReduceMin", np.min)],
)
def test_reductions(preset: type[omb.Preset], sizes: str, operator: str, reduce: Callable[..., np.ndarray]) -> None:
    behind = f"y = {operator} <axes = [1, 2, 3], keepdims = 0> (c)"
    prepared, x, convolved = _convolved(preset, sizes, "float[r] y", behind)
    for _ in range(2):
        np.testing.assert_allclose(prepared.run([x])[0], reduce(convolved, (1, 2, 3)), rtol=1e-2)


@pytest.mark.parametrize("sizes", ["n, 3, 3, 3", "2, 3, 3, 3"])
def test_what_is_quantized_by_its_own_limits(preset: type[omb.Preset], sizes: str) -> None:
    results = "uint8[a, b, e, f] y, float scale, uint8 point"
    prepared, x, convolved = _convolved(preset, sizes, results, "y, scale, point = DynamicQuantizeLinear (c)")
    for _ in range(2):
        y, scale, point = prepared.run([x])
        np.testing.assert_allclose(scale, np.ptp(convolved) / 255, rtol=1e-2)
        np.testing.assert_allclose((y - point.astype(np.float32)) * scale, convolved, atol=2 * scale)


@pytest.mark.parametrize("sizes", ["n, 4, h, w", "1, 4, h, w", "1, 4, 5, 5"])
@pytest.mark.parametrize("scales", ["one", "each"])
@pytest.mark.parametrize("behind", ["Identity (c)", "Add (c, c)", "Relu (c)", "HardSwish (c)"])
@pytest.mark.parametrize(("operator", "axis"), [("Conv", 0), ("ConvTranspose", 1)])
@pytest.mark.parametrize(("kind", "zero"), [("uint8", 128), ("int8", 0)])
def test_what_is_quantized_and_read_as_it_is(
    preset: type[omb.Preset], sizes: str, scales: str, behind: str, operator: str, axis: int, kind: str, zero: int
) -> None:
    rng = np.random.default_rng(0)
    weights = ", ".join(map(str, rng.integers(-50, 50, 108)))
    held = (
        "float t = {0.02}, int8 o = {0}"
        if scales == "one"
        else "float[3] t = {0.0123, 0.0373, 0.0143}, int8[3] o = {0, 0, 0}"
    )
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[a, b, d, e] y, float[a, b, d, e] v)
            <float s = {{0.1}}, float u = {{0.05}}, {kind} z = {{{zero}}}, {held}, int8[{"3, 4" if axis == 0 else "4, 3"}, 3, 3] k = {{{weights}}}> {{
            q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z) f = DequantizeLinear <axis = {axis}> (k, t, o) c = {operator} (a, f)
            r = QuantizeLinear (c, u, z) y = DequantizeLinear (r, u, z) v = {behind} }}"""
    )
    x = rng.normal(size=(1, 4, 5, 5)).astype(np.float32)
    prepared = preset.prepare(model, fallback="full")
    for _ in range(2):
        made, read = prepared.run([x])
        wanted, right = unoptimized(model, x)
        np.testing.assert_allclose(made, wanted, atol=0.051)
        np.testing.assert_allclose(read, right, rtol=1e-3, atol=1e-3)
