# SPDX-License-Identifier: Apache-2.0
"""Weights and values that are cast, quantized and scaled: engines fuse that with what is around it."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


#: What is computed of integers w as float a, with a zero point z and a scale k that are inputs.
SCALED = {
    "a scale": ("c = Mul (a, k)", lambda w, z, k: w * k),
    "a constant zero point and a scale": ("b = Sub (a, one) c = Mul (b, k)", lambda w, z, k: (w - 1) * k),
    "a zero point and a scale": ("b = Sub (a, z) c = Mul (b, k)", lambda w, z, k: (w - z) * k),
    "a zero point and a constant scale": ("b = Sub (a, z) c = Mul (b, two)", lambda w, z, k: (w - z) * 2),
}


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("form", SCALED)
def test_weights_are_scaled_in_each_run(preset: type[omb.Preset], form: str, kind: str) -> None:
    """OpenVINO went on with the result of the run before."""
    nodes, scaled = SCALED[form]
    model = parsed(
        f"""(float[n, 2] x, float[1, 2] k, float[1, 2] z) => (float[n, 2] y, float[1, 2] t) <{kind}[2, 2] w = {{1, 2, 3, 4}}, float one = {{1}}, float two = {{2}}> {{
        a = Cast <to = 1> (w) {nodes} y = MatMul (x, c) t = Add (z, k) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    x, k, z, w = np.ones((1, 2), np.float32), np.float32([[10, 20]]), np.float32([[1, 2]]), np.float32([[1, 2], [3, 4]])
    for factor in (1, 1, 2, 1):
        found = prepared.run([x, factor * k, z])[0]
        np.testing.assert_allclose(found, x @ scaled(w, z, factor * k), rtol=1e-5)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("biased", [False, True])
def test_scales_of_several_axes(preset: type[omb.Preset], axes: int, biased: bool) -> None:
    """ONNX Runtime lost an axis, or multiplied the bias by the scale."""
    ones = ", ".join("1" * axes)
    model = parsed(
        f"""(float[n, 2] x) => (float[{", ".join("abc"[: max(axes, 2)])}] y) <uint8[2, 2] w = {{114, 92, 181, 171}}, uint8 zero = {{120}},
        float[{ones}] s = {{0.02}}, float[2] b = {{10, 20}}> {{ q, t, z = DynamicQuantizeLinear (x) i = MatMulInteger (q, w, z, zero) c = Cast <to = 1> (i)
        k = Mul (t, s) e = Mul (c, k) y = {"Add (e, b)" if biased else "Identity (e)"} }}"""
    )
    x, w = np.float32([[1, 2], [3, -1]]), (np.float32([[114, 92], [181, 171]]) - 120) * np.float32(0.02)
    expected = x @ w + (np.float32([10, 20]) if biased else 0)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, expected.reshape(*[1] * (axes - 2), 2, 2), atol=0.05, strict=True)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("operator", ["LSTM", "RNN"])
def test_recurrent_layers_with_dequantized_weights(preset: type[omb.Preset], operator: str, kind: str) -> None:
    """OpenVINO's low-precision transformations lost their zero points."""
    rows, zero = {"LSTM": 8, "RNN": 2}[operator], 128 if kind == "uint8" else 0
    layer = f'y = {operator} <hidden_size = 2, direction = "bidirectional"> (x, w, r)'
    quantized = parsed(
        f"""(float[3, 1, 2] x, float[2, 3] u) => (float[a, b, c, d] y, float[2, 3] v) <float s = {{0.02}}, {kind} z = {{{zero}}}, float t = {{0.1}}, uint8 o = {{128}}> {{
        w = DequantizeLinear (p, s, z) r = DequantizeLinear (q, s, z) {layer} k = QuantizeLinear (u, t, o) v = DequantizeLinear (k, t, o) }}"""
    )
    plain = parsed(f"(float[3, 1, 2] x) => (float[a, b, c, d] y) {{ {layer} }}")
    numbers = np.random.default_rng(0)
    for name, read in (("p", "w"), ("q", "r")):
        held = numbers.integers(-100, 100, size=(2, rows, 2))
        quantized.graph.initializer.append(onnx.numpy_helper.from_array((held + zero).astype(kind), name))
        plain.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.02) * held.astype(np.float32), read))
    x = floats(3, 1, 2)
    right = preset.prepare(plain, fallback="full").run([x])[0]
    found = preset.prepare(quantized, fallback="full").run([x, floats(2, 3)])[0]
    np.testing.assert_allclose(found, right, atol=1e-4)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("between", ["m = Identity (b)", "m = Mul (b, two)"])
def test_casts_before_a_quantization_truncate(preset: type[omb.Preset], kind: str, between: str) -> None:
    """OpenVINO left both casts out."""
    model = parsed(
        f"""(float[n, 6] x) => (float[n, 6] y) <float s = {{0.05}}, uint8 z = {{10}}, float two = {{2}}> {{
        a = Cast <to = {3 if kind == "int8" else 2}> (x) b = Cast <to = 1> (a) {between} q = QuantizeLinear (m, s, z) y = DequantizeLinear (q, s, z) }}"""
    )
    x = np.float32([[0.3, 0.95, 1.35, 1.1, 0.4, 2.7]])
    expected = np.trunc(x) * (2 if "two" in between else 1)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["bool", "int64"])
def test_casts_to_other_types_stay(preset: type[omb.Preset], kind: str) -> None:
    to = {"bool": 9, "int64": 7}[kind]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 11]> g (float[4] x) => ({kind}[4] y, {kind}[4] v, uint8[4] z) <float s = {{0.5}}, uint8 o = {{0}}, int8[4] w = {{1, 2, 3, 4}}> {{
        a = Cast <to = 2> (x) y = Cast <to = {to}> (a) b = Cast <to = {to}> (w) v = {"And (b, y)" if kind == "bool" else "Mul (b, y)"}
        z = QuantizeLinear (x, s, o) }}"""
    )
    x = np.float32([0.3, 1, 3, 2])
    whole = np.array([0, 1, 3, 2])
    y, v, z = preset.prepare(model, fallback="full").run([x])
    assert y.tolist() == whole.astype(kind).tolist()
    assert v.tolist() == (whole.astype(bool).tolist() if kind == "bool" else [0, 2, 9, 8])
    assert z.tolist() == [1, 2, 6, 4]


def test_a_scale_with_more_axes_than_weights(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[n, 4] x) => (float[1, n, 3] y) <uint8[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[1, 1, 3] k = {1, 2, 3}> {
        a = Cast <to = 1> (w) c = Mul (a, k) y = MatMul (x, c) }"""
    )
    x, w = floats(2, 4), np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, (x @ (w * np.float32([1, 2, 3])))[None], rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("sizes", ["n, 3, 4, 2", "2, 3, 4, 2"])
@pytest.mark.parametrize("between", ["c = Neg (b)", "c = Mul (b, k)", "c = Identity (b)", "c = Add (b, k)"])
@pytest.mark.parametrize("given", ["int8", "float"])
def test_scales_of_channels_before_a_factor(preset: type[omb.Preset], between: str, sizes: str, given: str) -> None:
    """OpenVINO quantized by the first scale for all."""
    quantized = "a = Identity (x)" if given == "int8" else "a = QuantizeLinear <axis = 1> (x, s, z)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g ({given}[{sizes}] x) => (int8[d, e, f, g] y) <float[3] s = {{0.05, 0.07, 0.09}}, int8[3] z = {{0, 0, 0}},
        float t = {{0.0752609}}, int8 o = {{0}}, float k = {{-1.5}}> {{ {quantized} b = DequantizeLinear <axis = 1> (a, s, z) {between}
        y = QuantizeLinear (c, t, o) }}"""
    )
    whole = np.random.default_rng(0).integers(-20, 20, (2, 3, 4, 2))
    scaled = whole * np.array([0.05, 0.07, 0.09]).reshape(3, 1, 1)
    made = {"Neg (b)": -scaled, "Mul (b, k)": -1.5 * scaled, "Identity (b)": scaled, "Add (b, k)": scaled - 1.5}
    x = (whole if given == "int8" else scaled).astype({"int8": np.int8, "float": np.float32}[given])
    found = preset.prepare(model, fallback="full").run([x])[0]
    assert np.abs(found - np.round(made[between[4:]] / 0.0752609)).max() <= 1


@pytest.mark.parametrize("between", ["Neg (d)", "Mul (d, k)", "Div (d, k)"])
def test_rows_of_weights_behind_a_factor(preset: type[omb.Preset], between: str) -> None:
    """OpenVINO took the scales of the rows for those of the columns."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[n, 4] x) => (float[n, 2] y) <float s = {{0.02}}, uint8 z = {{128}}, float k = {{-1.5}},
        int8[4, 2] w = {{100, -50, 30, 20, -90, 80, 5, 60}}, float[4] r = {{0.01, 0.1, 0.02, 0.05}}> {{ a = QuantizeLinear (x, s, z)
        b = DequantizeLinear (a, s, z) d = DequantizeLinear <axis = 0> (w, r) e = {between} y = MatMul (b, e) }}"""
    )
    w = np.float32([[100, -50], [30, 20], [-90, 80], [5, 60]]) * np.float32([[0.01], [0.1], [0.02], [0.05]])
    factor = {"N": -1, "M": -1.5, "D": -1 / 1.5}[between[0]]
    x = np.float32([[1, 2, -1, 0.5]])
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], x @ w * factor, rtol=1e-2, atol=0.05)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_of_a_block(preset: type[omb.Preset], axis: int) -> None:
    """OpenVINO did not gather the scales with the columns, and gathered them with the rows, which ended the process."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[n, 4] x) => (float[n, c] y) <int8[4, 3] w = {{1, -2, 3, 4, 5, -6, 7, 8, 9, 10, 11, 12}},
        float[1, 3] s = {{0.1, 1, 10}}, int64[4] i = {{2, 0, 2, 1}}> {{ d = DequantizeLinear <axis = 0, block_size = 4> (w, s) v = Gather <axis = {axis}> (d, i)
        y = MatMul (x, v) }}"""
    )
    w = np.float32([[1, -2, 3], [4, 5, -6], [7, 8, 9], [10, 11, 12]]) * np.float32([0.1, 1, 10])
    x = floats(1, 4)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, x @ np.take(w, [2, 0, 2, 1], axis), rtol=1e-4, atol=1e-4)


def test_rows_of_weights_behind_a_reshape(preset: type[omb.Preset]) -> None:
    """OpenVINO took the scales of the rows for those of the columns."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[n, 3] x) => (float[n, 3] y) <int8[3, 3] w = {1, -2, 3, 4, 5, -6, 7, 8, 9}, float[3] s = {0.1, 1, 10},
        int64[2] h = {3, 3}> { d = DequantizeLinear <axis = 0> (w, s) v = Reshape (d, h) y = MatMul (x, v) }"""
    )
    w = np.float32([[1, -2, 3], [4, 5, -6], [7, 8, 9]]) * np.float32([[0.1], [1], [10]])
    x = floats(1, 3)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], x @ w, rtol=1e-4, atol=1e-4)


def test_values_of_four_bits_before_a_product(engine: type[omb.Preset]) -> None:
    """OpenVINO's low-precision transformations gave unrelated numbers."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[1, 4] x) => (float[1, 2] y) <float s = {0.1}, uint4 z = {3}, float t = {0.02},
        int8[4, 2] w = {100, -50, 30, 20, -90, 80, 5, 60}> { q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z) d = DequantizeLinear (w, t)
        y = MatMul (a, d) }"""
    )
    x = np.float32([[0.1, 0.4, -0.2, 0.9]])
    w = np.float32([[100, -50], [30, 20], [-90, 80], [5, 60]]) * np.float32(0.02)
    np.testing.assert_allclose(engine.prepare(model).run([x])[0], x @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_integer_weights_of_several_axes(preset: type[omb.Preset], axes: int) -> None:
    """ONNX Runtime scaled the first matrix alone."""
    ones = ", ".join(["1"] * (axes - 2) + ["2", "2"])
    model = parsed(
        f"""(float[n, 3, 2] x) => (float[{", ".join("abcde"[: max(axes, 3)])}] y) <uint8[{ones}] w = {{114, 92, 181, 171}}, uint8 zero = {{120}},
        float[2] s = {{0.02, 0.03}}, float[2] b = {{10, 20}}> {{ q, t, z = DynamicQuantizeLinear (x) i = MatMulInteger (q, w, z, zero) c = Cast <to = 1> (i)
        k = Mul (t, s) e = Mul (c, k) y = Add (e, b) }}"""
    )
    x = floats(2, 3, 2)
    w = (np.float32([[114, 92], [181, 171]]) - 120) * np.float32([0.02, 0.03])
    expected = x @ w + np.float32([10, 20])
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, expected if axes < 4 else expected[None], atol=0.1, strict=True)


@pytest.mark.parametrize("indices", ["i", "j"])
def test_rows_of_a_table_with_scales_of_columns(preset: type[omb.Preset], indices: str) -> None:
    """The OpenVINO of the execution provider gathered the scales too, or ended the process."""
    model = parsed(
        f"""(int64[n] i, float[a] f) => (float[b, 3] y, float[a] g) <int8[5, 3] w = {{1, -2, 3, 4, 5, -6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}, float[3] s = {{0.1, 1, 10}},
        int64[4] j = {{4, 0, 3, 4}}> {{ d = DequantizeLinear <axis = 1> (w, s) v = Gather (d, {indices}) y = Relu (v) g = Neg (f) }}"""
    )
    chosen = np.array([4, 0, 3, 4])
    w = np.float32([[1, -2, 3], [4, 5, -6], [7, 8, 9], [10, 11, 12], [13, 14, 15]]) * np.float32([0.1, 1, 10])
    found = preset.prepare(model, fallback="full").run([chosen, np.ones(2, np.float32)])[0]
    np.testing.assert_allclose(found, np.maximum(w[chosen], 0), rtol=1e-5)


def test_a_relu_before_four_bits(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime left it out, though the zero point is not the least number."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[1, 4] x) => (float[1, 4] y) <float s = {0.5}, int4 z = {-2}> {
        v = Relu (x) q = QuantizeLinear (v, s, z) y = DequantizeLinear (q, s, z) }"""
    )
    assert ort_cpu.prepare(model).run([np.float32([[-2, -1, 0, 1]])])[0].tolist() == [[0, 0, 0, 1]]


def test_rows_in_one_block_of_columns(preset: type[omb.Preset]) -> None:
    """ONNX Runtime took the scales of the rows for those of the columns."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[1, 3] x) => (float[1, 3] y) <float t = {0.02}, uint8 z = {128}, int8[3, 3] w = {1, -2, 3, 4, 5, -6, 7, 8, 9},
        float[3, 1] s = {0.1, 1, 10}> { q = QuantizeLinear (x, t, z) a = DequantizeLinear (q, t, z) d = DequantizeLinear <axis = 1, block_size = 3> (w, s)
        y = MatMul (a, d) }"""
    )
    w = np.float32([[1, -2, 3], [4, 5, -6], [7, 8, 9]]) * np.float32([[0.1], [1], [10]])
    x = np.float32([[0.5, -0.2, 1]])
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], x @ w, rtol=1e-3, atol=1e-3)
