# SPDX-License-Identifier: Apache-2.0
"""Functions that engines recognize in what is nearly one, and arithmetic that they do in the memory of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from onnx_multi_backend.models.contents import Contents

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

Array = np.ndarray[Any, Any]


def _parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17]> g {text}')


def _floats(*sizes: int) -> Array:
    return np.random.default_rng(sum(sizes)).normal(size=sizes).astype(np.float32)


def _rotary(cut: int, columns: str, sizes: str = "1, 2, 3, 4") -> ModelProto:
    return _parsed(
        f"""(float[{sizes}] x, float[1, 1, 3, 4] c, float[1, 1, 3, {columns}] s) => (float[e, f, g, h] y)
        <int64[1] zero = {{0}}, int64[1] cut = {{{cut}}}, int64[1] end = {{99}}, int64[1] axis = {{3}}> {{
        a = Slice (x, zero, cut, axis) b = Slice (x, cut, end, axis) n = Neg (b) r = Concat <axis = -1> (n, a) p = Mul (x, c) q = Mul (r, s) y = Add (p, q) }}"""
    )


@pytest.mark.parametrize(("cut", "columns", "given"), [(2, "1", 1), (2, "k", 1), (2, "k", 4), (3, "4", 4), (1, "4", 4)])
def test_what_is_nearly_a_rotary_embedding(preset: type[omb.Preset], cut: int, columns: str, given: int) -> None:
    x, c, s = _floats(1, 2, 3, 4), _floats(1, 1, 3, 4), _floats(1, 1, 3, given)
    turned = np.concatenate([-x[..., cut:], x[..., :cut]], axis=-1)
    found = preset.prepare(_rotary(cut, columns), fallback="full").run([x, c, s])[0]
    np.testing.assert_allclose(found, x * c + turned * s, rtol=1e-5, atol=1e-6)


def test_a_rotary_embedding_stays(openvino: type[omb.Preset]) -> None:
    assert not openvino.prepare(_rotary(2, "4")).adaptations
    assert not openvino.prepare(_rotary(2, "4", "b, n, 3, 4")).adaptations


def test_a_swish_with_more_axes(preset: type[omb.Preset]) -> None:
    model = _parsed(
        "(float[2, 3] x) => (float[1, 2, 3] y) <float[1, 1, 1] k = {1.5}> { a = Mul (x, k) b = Sigmoid (a) y = Mul (x, b) }"
    )
    x = _floats(2, 3)
    expected = (x / (1 + np.exp(-1.5 * x)))[None]
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_softmax_whose_sum_loses_its_axis(preset: type[omb.Preset], kept: int) -> None:
    model = _parsed(
        f"""(float[4, 4] x) => (float[4, 4] y) <int64[1] axis = {{1}}> {{ m = ReduceMax <axes = [1], keepdims = {kept}> (x) c = Sub (x, m) e = Exp (c)
        q = ReduceSum <keepdims = 0> (e, axis) y = Div (e, q) }}"""
    )
    x = _floats(4, 4)
    e = np.exp(x - x.max(1, keepdims=bool(kept)))
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, e / e.sum(1), rtol=1e-5, atol=1e-6)


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
    model = _parsed(
        f"""(float[n, 2] x, float[1, 2] k, float[1, 2] z) => (float[n, 2] y, float[1, 2] t) <{kind}[2, 2] w = {{1, 2, 3, 4}}, float one = {{1}}, float two = {{2}}> {{
        a = Cast <to = 1> (w) {nodes} y = MatMul (x, c) t = Add (z, k) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    x, k, z, w = np.ones((1, 2), np.float32), np.float32([[10, 20]]), np.float32([[1, 2]]), np.float32([[1, 2], [3, 4]])
    for factor in (1, 1, 2, 1):
        found = prepared.run([x, factor * k, z])[0]
        np.testing.assert_allclose(found, x @ scaled(w, z, factor * k), rtol=1e-5)


#: A matrix that is turned before its product with a vector, and the sizes of x.
TURNED = {
    "a matrix": ("t = Transpose (x) y = MatMul (t, v)", (3, 3)),
    "matrices": ("t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (t, v)", (2, 3, 3)),
    "a matrix that is cast": ("t = Transpose (x) c = Cast <to = 1> (t) y = MatMul (c, v)", (3, 3)),
}


@pytest.mark.parametrize("vector", ["input", "constant", "computed"])
@pytest.mark.parametrize("form", TURNED)
def test_a_turned_matrix_by_a_vector(preset: type[omb.Preset], form: str, vector: str) -> None:
    """ONNX Runtime left out that it is turned."""
    nodes, sizes = TURNED[form]
    nodes = nodes.replace("v)", {"input": "u)", "constant": "k)", "computed": "v)"}[vector])
    model = _parsed(
        f"""(float[{", ".join("abc"[: len(sizes)])}] x, float[3] u) => (float[{", ".join("efg"[: len(sizes) - 1])}] y, float[3] v)
        <float[3] k = {{1, 10, 100}}> {{ v = Abs (u) {nodes} }}"""
    )
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    found = preset.prepare(model, fallback="full").run([x, np.float32([1, 10, 100])])[0]
    np.testing.assert_allclose(found, np.swapaxes(x, -1, -2) @ np.float32([1, 10, 100]), rtol=1e-6)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("biased", [False, True])
def test_scales_of_several_axes(preset: type[omb.Preset], axes: int, biased: bool) -> None:
    """ONNX Runtime lost an axis, or multiplied the bias by the scale."""
    ones = ", ".join("1" * axes)
    model = _parsed(
        f"""(float[n, 2] x) => (float[{", ".join("abc"[: max(axes, 2)])}] y) <uint8[2, 2] w = {{114, 92, 181, 171}}, uint8 zero = {{120}},
        float[{ones}] s = {{0.02}}, float[2] b = {{10, 20}}> {{ q, t, z = DynamicQuantizeLinear (x) i = MatMulInteger (q, w, z, zero) c = Cast <to = 1> (i)
        k = Mul (t, s) e = Mul (c, k) y = {"Add (e, b)" if biased else "Identity (e)"} }}"""
    )
    x, w = np.float32([[1, 2], [3, -1]]), (np.float32([[114, 92], [181, 171]]) - 120) * np.float32(0.02)
    expected = x @ w + (np.float32([10, 20]) if biased else 0)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, expected.reshape(*[1] * (axes - 2), 2, 2), atol=0.05, strict=True)


def test_optimizers_see_what_they_get_right() -> None:
    from onnx_multi_backend.engines.ort.optimizers import harmful_optimizers

    for text in (
        "(float[a, 3] x, float[3, b] u) => (float[c, d] y) { t = Transpose <perm = [1, 0]> (x) y = MatMul (t, u) }",
        "(float[3, b] x, float[3] u) => (float[c] y) { t = Transpose <perm = [0, 1]> (x) y = MatMul (u, t) }",
    ):
        assert not harmful_optimizers(Contents(_parsed(text)))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("operator", ["LSTM", "RNN"])
def test_recurrent_layers_with_dequantized_weights(preset: type[omb.Preset], operator: str, kind: str) -> None:
    """OpenVINO's low-precision transformations lost their zero points."""
    rows, zero = {"LSTM": 8, "RNN": 2}[operator], 128 if kind == "uint8" else 0
    layer = f'y = {operator} <hidden_size = 2, direction = "bidirectional"> (x, w, r)'
    quantized = _parsed(
        f"""(float[3, 1, 2] x, float[2, 3] u) => (float[a, b, c, d] y, float[2, 3] v) <float s = {{0.02}}, {kind} z = {{{zero}}}, float t = {{0.1}}, uint8 o = {{128}}> {{
        w = DequantizeLinear (p, s, z) r = DequantizeLinear (q, s, z) {layer} k = QuantizeLinear (u, t, o) v = DequantizeLinear (k, t, o) }}"""
    )
    plain = _parsed(f"(float[3, 1, 2] x) => (float[a, b, c, d] y) {{ {layer} }}")
    numbers = np.random.default_rng(0)
    for name, read in (("p", "w"), ("q", "r")):
        held = numbers.integers(-100, 100, size=(2, rows, 2))
        quantized.graph.initializer.append(onnx.numpy_helper.from_array((held + zero).astype(kind), name))
        plain.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.02) * held.astype(np.float32), read))
    x = _floats(3, 1, 2)
    right = preset.prepare(plain, fallback="full").run([x])[0]
    found = preset.prepare(quantized, fallback="full").run([x, _floats(2, 3)])[0]
    np.testing.assert_allclose(found, right, atol=1e-4)


@pytest.mark.parametrize("sizes", ["n, 3", "n, c, h, w"])
@pytest.mark.parametrize("operator", ["Sigmoid", "Neg", "Identity"])
@pytest.mark.parametrize("slopes", ["alike", "broadcast"])
def test_slopes_that_another_node_makes(preset: type[omb.Preset], sizes: str, operator: str, slopes: str) -> None:
    """In open sizes OpenVINO gave the slopes."""
    given = sizes if slopes == "alike" else {"n, 3": "1, 3", "n, c, h, w": "c, 1, 1"}[sizes]
    model = _parsed(
        f"(float[{sizes}] x, float[{given}] k) => (float[{sizes}] y) {{ s = {operator} (k) y = PRelu (x, s) }}"
    )
    numbers = {"n": 2, "c": 3, "h": 4, "w": 5}
    x, k = (_floats(*(numbers.get(d) or int(d) for d in text.split(", "))) for text in (sizes, given))
    s = {"Sigmoid": 1 / (1 + np.exp(-k)), "Neg": -k, "Identity": k}[operator]
    found = preset.prepare(model, fallback="full").run([x, k])[0]
    np.testing.assert_allclose(found, np.where(x < 0, s * x, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("between", ["m = Identity (b)", "m = Mul (b, two)"])
def test_casts_before_a_quantization_truncate(preset: type[omb.Preset], kind: str, between: str) -> None:
    """OpenVINO left both casts out."""
    model = _parsed(
        f"""(float[n, 6] x) => (float[n, 6] y) <float s = {{0.05}}, uint8 z = {{10}}, float two = {{2}}> {{
        a = Cast <to = {3 if kind == "int8" else 2}> (x) b = Cast <to = 1> (a) {between} q = QuantizeLinear (m, s, z) y = DequantizeLinear (q, s, z) }}"""
    )
    x = np.float32([[0.3, 0.95, 1.35, 1.1, 0.4, 2.7]])
    expected = np.trunc(x) * (2 if "two" in between else 1)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], expected, atol=1e-6)


def test_a_scale_with_more_axes_than_weights(preset: type[omb.Preset]) -> None:
    model = _parsed(
        """(float[n, 4] x) => (float[1, n, 3] y) <uint8[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[1, 1, 3] k = {1, 2, 3}> {
        a = Cast <to = 1> (w) c = Mul (a, k) y = MatMul (x, c) }"""
    )
    x, w = _floats(2, 4), np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, (x @ (w * np.float32([1, 2, 3])))[None], rtol=1e-5, atol=1e-5, strict=True)
