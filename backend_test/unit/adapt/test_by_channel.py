# SPDX-License-Identifier: Apache-2.0
"""A constant for each channel behind a reduction or a product: OpenVINO takes elements of other channels, without a word."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed
from onnx_multi_backend.engines.across_nodes.by_channel import channels_apart
from onnx_multi_backend.models.contents import Contents

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
C, D = np.float32([1, 20, 300]), np.float32([1, 4, 9])
CONSTANTS = "<float[3] c = {1, 20, 300}, float[3] d = {1, 4, 9}, float h = {0.5}, int64[1] last = {2}, int64[1] first = {0}, int64[3] column = {1, 3, 1}>"
SUM, COLUMN = X.sum(2), C.reshape(1, 3, 1)

FORMS = {
    "a sum, scaled": ("r = ReduceSum <keepdims = 0> (x, last) y = Mul (r, c)", SUM * C),
    "from a constant": ("r = ReduceSum <keepdims = 0> (x, last) y = Sub (c, r)", C - SUM),
    "a mean": ("r = ReduceMean <axes = [2], keepdims = 0> (x) y = Add (r, c)", X.mean(2) + C),
    "axes kept": ("r = ReduceSum (x, last) e = Reshape (c, column) y = Div (r, e)", X.sum(2, keepdims=True) / COLUMN),
    "the first axis": (
        "r = ReduceSum (x, first) e = Reshape (c, column) y = Mul (r, e)",
        X.sum(0, keepdims=True) * COLUMN,
    ),
    "behind others": (
        "r = ReduceSum <keepdims = 0> (x, last) s = Mul (r, h) t = Abs (s) y = Add (c, t)",
        np.abs(SUM / 2) + C,
    ),
    "a global pool": (
        "r = GlobalAveragePool (x) e = Reshape (c, column) y = Mul (r, e)",
        X.mean(2, keepdims=True) * COLUMN,
    ),
    "the largest": ("r = GlobalMaxPool (x) e = Reshape (c, column) y = Add (r, e)", X.max(2, keepdims=True) + COLUMN),
    "a normalization": (
        "r = GlobalAveragePool (x) y = BatchNormalization <epsilon = 0.0> (r, c, c, d, d)",
        (X.mean(2, keepdims=True) - D.reshape(1, 3, 1)) / np.sqrt(D).reshape(1, 3, 1) * COLUMN + COLUMN,
    ),
    "several added": ("r = ReduceSum <keepdims = 0> (x, last) y = Sum (c, r, d)", SUM + C + D),
    "an axis added": (
        "r = ReduceSum <keepdims = 0> (x, last) u = Unsqueeze (r, last) e = Reshape (c, column) y = Mul (u, e)",
        SUM[..., None] * COLUMN,
    ),
    "an activation of two nodes": (
        "r = ReduceSum <keepdims = 0> (x, last) t = Sigmoid (r) s = Mul (r, t) y = Mul (s, c)",
        SUM / (1 + np.exp(-SUM)) * C,
    ),
    "a constant in an attribute": (
        "r = ReduceSum <keepdims = 0> (x, last) k = Constant <value_floats = [1.0, 20.0, 300.0]> () y = Mul (r, k)",
        SUM * C,
    ),
    "in a branch": (
        """b = Constant <value_int = 1> () k = Cast <to = 9> (b) y = If <
            then_branch = t () => (float[n, m] u) { r = ReduceSum <keepdims = 0> (x, last) u = Mul (r, c) },
            else_branch = e () => (float[n, m] v) { q = ReduceSum <keepdims = 0> (x, last) v = Neg (q) }> (k)""",
        SUM * C,
    ),
}


@pytest.mark.parametrize("sizes", ["2, 3, 4", "n, 3, m"])
@pytest.mark.parametrize("form", FORMS)
def test_each_channel_gets_its_own(preset: type[omb.Preset], form: str, sizes: str) -> None:
    body, right = FORMS[form]
    result = "p, q, r" if right.ndim == 3 else "p, q"
    model = parsed(f"(float[{sizes}] x) => (float[{result}] y) {CONSTANTS} {{ {body} }}")
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([X])[0], right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("behind", ["Mul (r, k)", "Sub (k, r)", "PRelu (r, k)", "Add (s, k) s = Mul (r, h)"])
@pytest.mark.parametrize("sizes", ["2, 3, 2, 4", "n, 3, m, 4", "n, 3, m, o, 4"])
@pytest.mark.parametrize("product", ["MatMul (x, w)", 'Einsum <equation = "...d,de->...e"> (x, w)'])
def test_heads_behind_a_product(preset: type[omb.Preset], product: str, sizes: str, behind: str) -> None:
    """As many columns as heads."""
    rank = sizes.count(",") + 1
    column = ", ".join(["1", "3", *["1"] * (rank - 2)])
    rng = np.random.default_rng(rank)
    w, k = rng.normal(size=(4, 3)).astype(np.float32), np.float32([1, -20, 0.5])
    constants = (
        f"float[4, 3] w = {{{', '.join(map(str, w.ravel()))}}}, float[{column}] k = {{1, -20, 0.5}}, float h = {{0.5}}"
    )
    last, _, first = behind.partition(") ")
    model = parsed(
        f"(float[{sizes}] x) => (float[{', '.join('pqrst'[:rank])}] y) <{constants}> {{ r = {product} {first} y = {last.rstrip(')')}) }}"
    )
    x = rng.normal(size=(2, 3, 2, 4) if rank == 4 else (2, 3, 2, 2, 4)).astype(np.float32)
    r, k = x @ w, k.reshape(1, 3, *[1] * (rank - 2))
    right = {"M": r * k, "S": k - r, "P": np.where(r < 0, r * k, r), "A": r / 2 + k}[behind[0]]
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], right, rtol=1e-4, atol=1e-4)


def test_a_default_is_a_constant_to_openvino(preset: type[omb.Preset]) -> None:
    model = parsed(
        f"(float[n, 3, m] x, float[3] c) => (float[p, q] y) {CONSTANTS} {{ r = ReduceSum <keepdims = 0> (x, last) y = Mul (r, c) }}"
    )
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run({"x": X})[0], SUM * C, rtol=1e-5, atol=1e-5)


def test_before_operators_broadcast_to_both_sides(preset: type[omb.Preset]) -> None:
    model = parsed(
        "(float[n, 3, m] x) => (float[p, q] y) <float[3] c = {1, 20, 300}> { r = ReduceSum <axes = [2], keepdims = 0> (x) y = Mul (r, c) }",
        7,
    )
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([X])[0], SUM * C, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "behind",
    [
        "e = Identity (c) y = Add (r, e)",
        "g = Shape (x) k = Size (g) e = Cast <to = 1> (k) y = Div (r, e)",
        "y = Mul (r, h)",
    ],
)
def test_biases_and_numbers_are_left_alone(behind: str) -> None:
    """Nothing is inferred for them: a transformer has one behind each product."""
    model = parsed(
        f"(float[n, m, 4] x, float[4, 3] w) => (float[p, q, r] y) {CONSTANTS} {{ v = Abs (w) r = MatMul (x, v) {behind} }}"
    )
    stored = parsed(
        f"(float[n, m, 3] x) => (float[p, q, r] y) <float[3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {CONSTANTS[1:]} {{ r = MatMul (x, w) {behind} }}"
    )
    assert channels_apart(Contents(model), stays_open=True) is None
    assert channels_apart(Contents(stored), stays_open=True) is None


def test_products_of_what_a_run_gives_are_left_alone() -> None:
    """They are right; those of what a product with a constant made are not."""
    head = "(float[n, 3, m, m] x) => (float[n, 3, m, m] y)"
    run_alone = parsed(
        f"{head} {CONSTANTS} {{ e = Reshape (c, heads) r = MatMul (x, x) y = Mul (r, e) }}".replace(
            "int64[3] column = {1, 3, 1}", "int64[4] heads = {1, 3, 1, 1}"
        )
    )
    assert channels_apart(Contents(run_alone), stays_open=True) is None


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("behind", ["Add (v, k)", "Mul (v, k)"])
@pytest.mark.parametrize(
    ("sizes", "axes", "constant"),
    [
        ((4, 6, 4, 2), [0], [4, 1]),
        ((4, 6, 4, 2), [0, 1], [2]),
        ((3, 6, 4, 2, 2), [1, 3], [4, 1]),
        ((4, 6, 4, 2, 1), [1, 2, 4], [2]),
        ((2, 3, 4, 2, 3, 2), [0], [3, 1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("fixed", [True, False])
def test_what_drops_axes_and_is_quantized(
    preset: type[omb.Preset],
    operator: str,
    behind: str,
    sizes: tuple[int, ...],
    axes: list[int],
    constant: list[int],
    fixed: bool,
) -> None:
    declared, results = sizes if fixed else "abcdef"[: len(sizes)], "uvwxyz"[: len(sizes) - len(axes)]
    k = np.arange(1, 1 + max(constant), dtype=np.float32).reshape(constant)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{", ".join(map(str, declared))}] x) => (uint8[{", ".join(results)}] y)
        <int64[{len(axes)}] a = {{{", ".join(map(str, axes))}}}, float s = {{0.5}}, uint8 z = {{128}},
        float[{", ".join(map(str, constant))}] k = {{{", ".join(map(str, k.ravel()))}}}> {{
        v = {operator} <keepdims = 0> (x, a) w = {behind} y = QuantizeLinear (w, s, z) }}"""
    )
    x = np.random.default_rng(0).normal(size=sizes).astype(np.float32)
    reduced = {"ReduceMax": np.max, "ReduceMean": np.mean, "ReduceSum": np.sum}[operator](x, axis=tuple(axes))
    right = np.clip(np.round((reduced + k if "Add" in behind else reduced * k) / 0.5) + 128, 0, 255)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], right, atol=1)


@pytest.mark.parametrize("sizes", ["n, 3, 4, 4", "n, c, h, w", "2, 3, 4, 4"])
@pytest.mark.parametrize("behind", ["v", "Relu (v)"])
def test_a_product_before_a_convolution_whose_weights_have_zero_points(
    preset: type[omb.Preset], sizes: str, behind: str
) -> None:
    made = "u = Relu (v)" if "Relu" in behind else "u = Identity (v)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[a, b, e, f] y)
        <float s = {{0.125}}, uint8 z = {{128}}, float[4, 4] m = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}}, float t = {{0.25}},
        uint8[3, 3, 1, 1] w = {{138, 108, 158, 88, 178, 68, 198, 48, 218}}, uint8 p = {{128}}> {{
        v = MatMul (x, m) {made} q = QuantizeLinear (u, s, z) d = DequantizeLinear (q, s, z) f = DequantizeLinear (w, t, p) y = Conv (d, f) }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)
    product = x @ np.float32([[1, 2, 3, 4], [5, 6, 7, 8], [9, 1, 2, 3], [4, 5, 6, 7]])
    rounded = np.clip(np.round((np.maximum(product, 0) if "Relu" in behind else product) * 8), -128, 127) / 8
    weights = np.float32([[10, -20, 30], [-40, 50, -60], [70, -80, 90]]) * 0.25
    right = np.einsum("oc,nchw->nohw", weights, rounded)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], right, rtol=1e-4, atol=1)


@pytest.mark.parametrize("sizes", ["1, 2, 2, 2", "1, 3, 2, 2", "n, 2, 4, 4"])
@pytest.mark.parametrize("product", ["MatMul (v, t)", 'Einsum <equation = "abcd,abde->abce"> (v, t)'])
@pytest.mark.parametrize("behind", ["Identity (p)", "Relu (p)"])
def test_products_of_quantized_values_that_are_quantized_by_channel(
    preset: type[omb.Preset], sizes: str, product: str, behind: str
) -> None:
    """Both operands are told by a run: of fixed sizes, scales of other channels, or a model that was refused."""
    shape = [int(size) for size in sizes.replace("n", "1").split(", ")]
    scales, x = np.float32([0.02, 0.09, 0.05])[: shape[1]], np.random.default_rng(4).normal(size=shape)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[a, b, c, d] y)
        <float s = {{0.05}}, uint8 z = {{128}}, float[{shape[1]}] ss = {{{", ".join(map(str, scales))}}}, uint8[{shape[1]}] zz = {{{", ".join(["110", "140", "100"][: shape[1]])}}}> {{
        q = QuantizeLinear (x, s, z) v = DequantizeLinear (q, s, z) t = Transpose <perm = [0, 1, 3, 2]> (v) p = {product} r = {behind}
        o = QuantizeLinear <axis = 1> (r, ss, zz) y = DequantizeLinear <axis = 1> (o, ss, zz) }}"""
    )
    v = np.clip(np.rint(x / 0.05), -128, 127) * 0.05
    right = v @ v.swapaxes(2, 3)
    right = np.maximum(right, 0) if "Relu" in behind else right
    scale = scales.reshape(1, -1, 1, 1)
    zero = np.float32([110, 140, 100])[: shape[1]].reshape(1, -1, 1, 1)
    right = (np.clip(np.rint(right / scale) + zero, 0, 255) - zero) * scale
    got = preset.prepare(model, fallback="full").run([x.astype(np.float32)])[0]
    np.testing.assert_array_less(np.abs(got - right), np.broadcast_to(scale * 1.5, right.shape))


@pytest.mark.parametrize(
    "shapes", [((1, 7, 3), (1, 3, 7)), ((1, 7, 1), (1, 1, 7)), ((1, 7, 2, 3), (1, 7, 3, 7))], ids=str
)
@pytest.mark.parametrize("behind", ["Identity (m)", "Relu (m)", "Slice (m, from, to, from, to)"])
def test_a_product_that_is_quantized_by_channel(
    preset: type[omb.Preset], shapes: tuple[tuple[int, ...], ...], behind: str
) -> None:
    """There are as many channels as columns. A Slice of everything is left out."""
    first, second = (", ".join(map(str, shape)) for shape in shapes)
    scales = np.float32([0.015625, 0.05, 0.02, 0.03, 0.1, 0.015625, 0.04])
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{first}] x, float[{second}] w) => (float y)
        <float[7] s = {{{", ".join(map(str, scales))}}}, int8[7] z = {{0, 0, 0, 0, 0, 0, 0}}, int64[1] from = {{0}}, int64[1] to = {{1}}> {{
        m = MatMul (x, w) r = {behind} q = QuantizeLinear <axis = 1> (r, s, z) y = DequantizeLinear <axis = 1> (q, s, z) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    prepared = preset.prepare(model, fallback="full")
    rng = np.random.default_rng(0)
    for _ in range(2):
        x, w = (rng.normal(size=shape).astype(np.float32) * 2 for shape in shapes)
        made = np.maximum(x @ w, 0) if "Relu" in behind else x @ w
        scale = scales.reshape(1, 7, *[1] * (made.ndim - 2))
        right = np.clip(np.rint(made / scale), -128, 127) * scale
        np.testing.assert_allclose(prepared.run([x, w])[0], right, atol=0.11)


@pytest.mark.parametrize("form", ["MatMul (w, x)", 'Einsum <equation = "ij,bjk->bik"> (w, x)'])
def test_a_column_of_factors_before_a_quantization(preset: type[omb.Preset], form: str) -> None:
    """The factors become a part of its scales, where a product of three axes has as many rows as columns."""
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[2, 2, 2] x) => (float[2, 2, 2] y)
        <float[2, 2] w = {{2, 5, 8, 4}}, float[2, 1] c = {{6, 4}}, float s = {{0.5}}, int8 z = {{0}}> {{
            p = {form} m = Mul (p, c) q = QuantizeLinear (m, s, z) y = DequantizeLinear (q, s, z) }}"""
    )
    prepared = preset.prepare(made, fallback="full")
    x = np.float32([[[0.2, -0.3], [0.4, 0.5]], [[-0.5, 0.1], [0.3, 0.2]]])
    for fed in (x, x[::-1].copy()):
        right = np.round(np.float32([[2, 5], [8, 4]]) @ fed * np.float32([[6], [4]]) * 2) / 2
        np.testing.assert_allclose(prepared.run([fed])[0], right, atol=0.51)
