# SPDX-License-Identifier: Apache-2.0
"""Constants that are added to quantized values along another axis than their scales, which OpenVINO takes for ones along the channels."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_multi_backend as omb

SCALES = np.array([0.03, 0.05, 0.02], np.float32)
ROUNDED = "q = QuantizeLinear <axis = 1> (x, s, z) d = DequantizeLinear <axis = 1> (q, s, z) "
CONVOLVED = """q = QuantizeLinear (x, h, o) e = DequantizeLinear (q, h, o) w = DequantizeLinear <axis = 0> (W, s, p)
    v = Conv (e, w) d = Relu (v) """


def _quantized(sizes: str, body: str) -> onnx.ModelProto:
    rank = sizes.count(",") + 1
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[{", ".join("abcd"[:rank])}] y)
        <float[3] s = {{0.03, 0.05, 0.02}}, uint8[3] z = {{128, 128, 128}}, int8[3] p = {{0, 0, 0}}, float h = {{0.03125}}, uint8 o = {{128}},
        int8[3, 3, 1, 1] W = {{10, 20, 30, 40, 50, 60, 70, 80, 90}}, float half = {{0.5}}, float[3] row = {{5, 6, 7}},
        float[3, 1] column = {{5, 6, 7}},
        int64[1] last = {{1}}, int64[2] tall = {{3, 1}}, float[1, 3] m = {{1, 1, 1}}>
        {{ {body} }}"""
    )


def _rounded(x: np.ndarray) -> np.ndarray:
    scales = SCALES.reshape(3, *[1] * (x.ndim - 2))
    return np.clip(np.round(x / scales), -128, 127) * scales


COLUMN = np.array([[5], [6], [7]], np.float32)


@pytest.mark.parametrize("sizes", ["3, 3", "n, 3", "n, m", "1, 3, 3, 3", "n, 3, h, w"])
@pytest.mark.parametrize(
    ("body", "factor", "sign"),
    [
        ("y = Add (d, column)", 1, 1),
        ("y = Sub (d, column)", 1, -1),
        ("y = Sum (d, d, column)", 2, 1),
        ("k = Unsqueeze (row, last) y = Add (d, k)", 1, 1),
        ("k = Identity (column) l = Reshape (k, tall) y = Add (d, l)", 1, 1),
        ("e = Identity (d) y = Add (column, e)", 1, 1),
        ("e = Mul (d, half) y = Add (e, column)", 0.5, 1),
    ],
)
def test_behind_scales_of_each_channel(
    preset: type[omb.Preset], sizes: str, body: str, factor: float, sign: float
) -> None:
    rank = sizes.count(",") + 1
    x = np.random.default_rng(0).normal(size=(3, 3) if rank == 2 else (1, 3, 3, 3)).astype(np.float32)
    prepared = preset.prepare(_quantized(sizes, ROUNDED + body), fallback="full")
    np.testing.assert_allclose(prepared.run([x])[0], factor * _rounded(x) + sign * COLUMN, rtol=0, atol=1e-3)


@pytest.mark.parametrize("sizes", ["3, 3", "n, 3", "n, m"])
@pytest.mark.parametrize("body", ["y = Mean (d, column)", "e = Mul (d, m) y = Mean (e, column)"])
def test_means(preset: type[omb.Preset], sizes: str, body: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    prepared = preset.prepare(_quantized(sizes, ROUNDED + body), fallback="full")
    np.testing.assert_allclose(prepared.run([x])[0], (_rounded(x) + COLUMN) / 2, rtol=0, atol=1e-3)


@pytest.mark.parametrize("sizes", ["1, 3, 3, 3", "n, 3, h, w"])
@pytest.mark.parametrize(("name", "term"), [("column", COLUMN), ("row", COLUMN[:, 0])])
def test_behind_a_convolution(preset: type[omb.Preset], sizes: str, name: str, term: np.ndarray) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 3, 3)).astype(np.float32)
    prepared = preset.prepare(_quantized(sizes, f"{CONVOLVED} y = Add (d, {name})"), fallback="full")
    weights = np.arange(10, 100, 10, np.float32).reshape(3, 3) * SCALES[:, None]
    rounded = np.clip(np.round(x * 32), -128, 127) / 32
    right = np.maximum(np.einsum("oc,nchw->nohw", weights, rounded), 0) + term
    np.testing.assert_allclose(prepared.run([x])[0], right, rtol=0, atol=0.2)


def test_terms_along_the_channels_are_added_as_they_are(preset: type[omb.Preset]) -> None:
    model = _quantized("1, 3, 3, 3", f"{ROUNDED} c = Unsqueeze (column, back) y = Add (d, c)")
    model.graph.initializer.add(name="back", dims=[1], data_type=onnx.TensorProto.INT64, int64_data=[2])
    prepared = preset.prepare(model, fallback="full")
    x = np.random.default_rng(0).normal(size=(1, 3, 3, 3)).astype(np.float32)
    np.testing.assert_allclose(prepared.run([x])[0], _rounded(x) + COLUMN[:, :, None], rtol=0, atol=1e-3)
    assert not [made for made in prepared.adaptations if made.pass_name == "terms_apart"]


@pytest.mark.parametrize("declared", [[3, 1], ["r", 1], ["r", "c"]], ids=str)
def test_a_constant_that_is_declared_with_open_sizes(preset: type[omb.Preset], declared: list[int | str]) -> None:
    model = _quantized("1, 3, 3, 3", ROUNDED + "k = Identity (column) l = Reshape (k, tall) y = Add (d, l)")
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("l", onnx.TensorProto.FLOAT, declared))
    x = np.random.default_rng(0).normal(size=(1, 3, 3, 3)).astype(np.float32)
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run([x])[0], _rounded(x) + COLUMN, rtol=0, atol=1e-3)
