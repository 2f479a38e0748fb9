# SPDX-License-Identifier: Apache-2.0
"""Functions that engines recognize in what is nearly one, and arithmetic that they do in the memory of weights."""

from __future__ import annotations

import math
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


#: What turns x into r, and numpy's form of that.
TURNINGS = {
    "parts of a Split that stay": (
        "p, q = Split <axis = 3> (x, half) n = Neg (p) r = Concat <axis = -1> (n, q)",
        lambda p, q: (-p, q),
    ),
    "unequal parts of a Split": ("q, p = Split <axis = 3> (x, odd) n = Neg (p) r = Concat <axis = -1> (n, q)", None),
    "slices that stay": (
        "p = Slice (x, zero, two, axis) q = Slice (x, two, end, axis) n = Neg (p) r = Concat <axis = -1> (n, q)",
        lambda p, q: (-p, q),
    ),
    "a product with -1, of other bounds": (
        "q = Slice (x, zero, one, axis) p = Slice (x, one, end, axis) n = Mul (p, minus) r = Concat <axis = -1> (n, q)",
        None,
    ),
    "a rotary embedding": (
        "p = Slice (x, zero, two, axis) q = Slice (x, two, end, axis) n = Neg (q) r = Concat <axis = -1> (n, p)",
        lambda p, q: (-q, p),
    ),
}


@pytest.mark.parametrize("rows", ["3", "1", "m"])
@pytest.mark.parametrize("form", TURNINGS)
def test_parts_that_change_places_otherwise(preset: type[omb.Preset], form: str, rows: str) -> None:
    nodes, turned = TURNINGS[form]
    model = _parsed(
        f"""(float[1, 2, {rows}, 4] x, float[1, 1, 3, 4] c, float[1, 1, 3, 4] s) => (float[e, f, g, h] y) <int64[2] half = {{2, 2}}, int64[2] odd = {{1, 3}},
        int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] end = {{99}}, int64[1] axis = {{3}}, float minus = {{-1}}> {{
        {nodes} a = Mul (x, c) b = Mul (r, s) y = Add (a, b) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    c, s = _floats(1, 1, 3, 4), _floats(1, 1, 3, 4) + 1
    for count in [3] if rows == "m" else [int(rows)]:
        x = _floats(1, 2, count, 4)
        parts = turned(x[..., :2], x[..., 2:]) if turned else (-x[..., 1:], x[..., :1])
        expected = x * c + np.concatenate(parts, axis=-1) * s
        np.testing.assert_allclose(prepared.run([x, c, s])[0], expected, rtol=1e-5, atol=1e-6, strict=True)


def test_a_rotary_embedding_stays(openvino: type[omb.Preset]) -> None:
    assert not openvino.prepare(_rotary(2, "4")).adaptations
    assert not openvino.prepare(_rotary(2, "4", "b, n, 3, 4")).adaptations


#: Functions of x that are written with a constant k which has more axes.
FUNCTIONS = {
    "Swish": (
        "float[1, 1, 1] k = {1.5}",
        "a = Mul (x, k) b = Sigmoid (a) y = Mul (x, b)",
        lambda x: x / (1 + np.exp(-1.5 * x)),
    ),
    "HardSwish": (
        "float[1, 1, 1] k = {3}, float zero = {0}, float six = {6}",
        "a = Add (x, k) b = Max (a, zero) c = Min (b, six) d = Div (c, six) y = Mul (x, d)",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    "GELU": (
        "float root = {1.4142135}, float one = {1}, float[1, 1, 1] k = {0.5}",
        "a = Div (x, root) b = Erf (a) c = Add (b, one) d = Mul (k, x) y = Mul (d, c)",
        lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    ),
}


@pytest.mark.parametrize("sizes", ["2, 2", "n, m"])
@pytest.mark.parametrize("form", FUNCTIONS)
def test_a_function_with_more_axes(preset: type[omb.Preset], form: str, sizes: str) -> None:
    constants, nodes, function = FUNCTIONS[form]
    x = _floats(2, 2)
    found = preset.prepare(
        _parsed(f"(float[{sizes}] x) => (float[1, {sizes}] y) <{constants}> {{ {nodes} }}"), fallback="full"
    ).run([x])[0]
    np.testing.assert_allclose(found, function(x)[None], rtol=1e-4, atol=1e-5)
    assert found.shape == (1, 2, 2)


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
    model = _parsed(
        """(float[n, 4] x) => (float[1, n, 3] y) <uint8[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[1, 1, 3] k = {1, 2, 3}> {
        a = Cast <to = 1> (w) c = Mul (a, k) y = MatMul (x, c) }"""
    )
    x, w = _floats(2, 4), np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, (x @ (w * np.float32([1, 2, 3])))[None], rtol=1e-5, atol=1e-5, strict=True)


def test_a_mean_that_is_computed_twice(preset: type[omb.Preset]) -> None:
    model = _parsed(
        """(float[3, 3] x) => (float[3, 3] y) <float eps = {0.1}> { m = ReduceMean <axes = [1]> (x) c = Sub (x, m) n = ReduceMean <axes = [1]> (x)
        d = Sub (x, n) q = Mul (d, d) v = ReduceMean <axes = [1], keepdims = 0> (q) s = Sqrt (v) t = Add (s, eps) y = Div (c, t) }"""
    )
    x = _floats(3, 3)
    c = x - x.mean(1, keepdims=True)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, c / (np.sqrt((c * c).mean(1)) + np.float32(0.1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", ["a, b, c", "1, 1, 3"])
@pytest.mark.parametrize("shape", ["0, 0, 0", "-1, 1, 3"])
def test_an_expand_that_gives_axes_alone(preset: type[omb.Preset], shape: str, sizes: str) -> None:
    """Behind a Reshape OpenVINO left it out."""
    model = _parsed(
        f"""(float[{sizes}] x) => (float[1, d, e, f] y) <int64[3] z = {{{shape}}}, int64[4] o = {{1, 1, 1, 1}}> {{
        r = Reshape (x, z) t = Expand (r, o) y = Identity (t) }}"""
    )
    x = _floats(1, 1, 3)
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run([x])[0], x[None], strict=True)


@pytest.mark.parametrize("sizes", ["1, 2, 4, 4", "n, 2, h, w"])
def test_a_pad_before_a_transposed_convolution(preset: type[omb.Preset], sizes: str) -> None:
    """OpenVINO took it for padding of the result."""
    model = _parsed(
        f"""(float[{sizes}] x) => (float[n, c, h, w] y) <int64[8] p = {{0, 0, 1, 1, 0, 0, 1, 1}}, float[2, 1, 2, 2] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
        t = Pad (x, p) y = ConvTranspose <kernel_shape = [2, 2], pads = [1, 1, 1, 1], strides = [2, 2]> (t, w) }}"""
    )
    x = _floats(1, 2, 4, 4)
    padded, w = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2)
    expected = np.zeros((12, 12), np.float32)
    for i in range(6):
        for j in range(6):
            expected[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += np.einsum("c,chw->hw", padded[0, :, i, j], w)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found[0, 0], expected[1:-1, 1:-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", ["c, d", "d, c", "c, c"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sizes", ["1, 2, 2, 2", "n, c, h, w"])
def test_convolutions_of_parts_that_are_put_together(
    preset: type[omb.Preset], sizes: str, axis: int, order: str
) -> None:
    """OpenVINO made one of groups of them, whatever the axis and the order."""
    model = _parsed(
        f"""(float[{sizes}] x) => (float[p, q, r, s] y) <int64[2] t = {{1, 1}}, float[1, 1, 1, 1] v = {{2}}, float[1, 1, 1, 1] w = {{3}}> {{
        a, b = Split <axis = 1> (x, t) c = Conv (a, v) d = Conv (b, w) y = Concat <axis = {axis}> ({order}) }}"""
    )
    x = _floats(1, 2, 2, 2)
    convolved = {"c": 2 * x[:, :1], "d": 3 * x[:, 1:]}
    expected = np.concatenate([convolved[name] for name in order.split(", ")], axis=axis)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], expected, rtol=1e-5)


def test_parts_of_a_slice_of_no_rows(openvino: type[omb.Preset]) -> None:
    """The process ended while OpenVINO compiled it."""
    model = _parsed(
        """(float[4, 4, 4, 4] x) => (float[a, b, c, d] y) <int64[1] s = {-1}, int64[1] e = {3}, int64[1] axis = {0}, int64[2] two = {2, 2}, float zero = {0},
        float[1] one = {1}> { t = Transpose <perm = [1, 2, 3, 0]> (x) u = Slice (t, s, e, axis) p, q = Split <axis = 2> (u, two) v = Concat <axis = 2> (q, p)
        g = Greater (v, zero) h = Where (g, v, one) y = Transpose <perm = [3, 0, 1, 2]> (h) }"""
    )
    assert openvino.prepare(model).run([_floats(4, 4, 4, 4)])[0].shape == (4, 0, 4, 4)


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
