# SPDX-License-Identifier: Apache-2.0
"""Constants with a value for each of two columns of a product, or where only a run tells how many columns there are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

BODIES = {
    "Add": "t = MatMul (a, b) y = Add (t, c)",
    "Sub from the constant": "t = MatMul (a, b) y = Sub (c, t)",
    "Div": "t = MatMul (a, b) y = Div (t, c)",
    "Sum": "t = MatMul (a, b) y = Sum (c, t)",
    "Mean": "t = MatMul (a, b) y = Mean (t, c)",
    "one behind the other": "t = MatMul (a, b) u = Mul (t, c) v = Relu (u) y = Add (v, c)",
    "computed of constants": "d = Neg (c) t = MatMul (a, b) y = Add (t, d)",
    "a computed operand": "e = Exp (b) t = MatMul (a, e) y = Add (t, c)",
    "BatchNormalization": "v = Mul (c, c) t = MatMul (a, b) y = BatchNormalization (t, c, c, c, v)",
    "PRelu": "t = MatMul (a, b) y = PRelu (t, c)",
    "Gemm": "y = Gemm (a, b, c)",
    "Gemm with factors": "y = Gemm <alpha = 0.5, beta = 2.0> (a, b, c)",
    "Gemm, the second operand transposed": "f = Transpose <perm = [1, 0]> (b) y = Gemm <transB = 1> (a, f, c)",
}


def model(body: str, opset: int) -> ModelProto:
    head = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[m, k] a, float[k, n] b) => (float[m, n] y)'
    return onnx.parser.parse_model(f"{head} <float[2] c = {{1.5, -2.5}}> {{ {body} }}")


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("opset", [8, 11, 17, 22])
def test_each_column_has_its_constant(openvino: type[omb.Preset], body: str, opset: int) -> None:
    made = model(body, opset)
    prepared = openvino.prepare(made)
    assert {"column_constants", "columns_apart"} & {change.pass_name for change in prepared.adaptations}
    right = omb.OrtCpuBackend.prepare(made)
    rng = np.random.default_rng(0)
    for rows in (1, 2, 3):
        for inner in (1, 2, 3):
            operands = [rng.uniform(-1, 1, size).astype(np.float32) for size in ((rows, inner), (inner, 2))]
            np.testing.assert_allclose(prepared.run(operands)[0], right.run(operands)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "t = MatMul (a, b) y = Max (t, c)",
        "e = Exp (a) y = Add (e, c)",
        'e = Einsum <equation = "ij->ij"> (a) y = Add (e, c)',
        "d = Constant <value = float[3] {1, 2, 3}> () t = MatMul (a, b) y = Add (t, d)",
        "k = Constant <value = float[2, 2] {1, 2, 3, 4}> () t = MatMul (a, k) y = Add (t, c)",
        "k = Constant <value = float[2, 2] {1, 2, 3, 4}> () l = Identity (k) t = MatMul (a, l) y = Add (t, c)",  # shared weights
    ],
)
def test_the_others_stay(openvino: type[omb.Preset], body: str) -> None:
    prepared = openvino.prepare(model(body, 17))
    assert not [change for change in prepared.adaptations if change.pass_name in ("column_constants", "columns_apart")]


@pytest.mark.parametrize(
    "sizes", [("n, h, a, b", "n, h, b, c"), ("n, a, b", "n, b, c"), ("n, a, 2", "n, 2, c"), ("n, 2, 2", "n, 2, 2")]
)
@pytest.mark.parametrize("product", ["MatMul", 'Einsum <equation = "...ij,...jk->...ik">'])
@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("z = Add (p, k)", lambda p, k: p + k),
        ("r = Relu (p) z = Add (r, k)", lambda p, k: np.maximum(p, 0) + k),
        ("r = Mul (p, k) z = Sub (k, r)", lambda p, k: k - p * k),
    ],
)
def test_products_of_several_axes(
    preset: type[omb.Preset],
    sizes: tuple[str, str],
    product: str,
    body: str,
    right: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> None:
    results = ", ".join("stuv"[: sizes[0].count(",") + 1])
    made = parsed(
        f"(float[{sizes[0]}] x, float[{sizes[1]}] y) => (float[{results}] z) <float[2] k = {{-2.5, 0.7}}> {{ p = {product} (x, y) {body} }}"
    )
    x, y = (
        np.random.default_rng(i).normal(size=[2] * (given.count(",") + 1)).astype(np.float32)
        for i, given in enumerate(sizes)
    )
    got = preset.prepare(made, fallback="full").run([x, y])[0]
    np.testing.assert_allclose(got, right(x @ y, np.float32([-2.5, 0.7])), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "sizes", [("2, 2", "2, 2"), ("n, 2", "2, 2"), ("2, 2, 2", "2, 2, 2"), ("n, 3, 2, 2", "n, 3, 2, 2")]
)
@pytest.mark.parametrize("column", [True, False])
def test_slopes_of_two_known_columns(preset: type[omb.Preset], sizes: tuple[str, str], column: bool) -> None:
    rank = sizes[0].count(",") + 1
    shape = ", ".join([*["1"] * (rank - 1), "2"]) if column else "2"
    results = ", ".join("abcd"[:rank])
    made = parsed(
        f"(float[{sizes[0]}] x, float[{sizes[1]}] y) => (float[{results}] z) <float[{shape}] k = {{-2.5, 0.7}}> {{ p = MatMul (x, y) z = PRelu (p, k) }}"
    )
    x, y = (
        np.random.default_rng(i)
        .normal(size=[int(s) if s.isdigit() else 2 for s in given.split(", ")])
        .astype(np.float32)
        for i, given in enumerate(sizes)
    )
    product = x @ y
    right = np.where(product < 0, product * np.float32([-2.5, 0.7]), product)
    np.testing.assert_allclose(preset.prepare(made, fallback="full").run([x, y])[0], right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("operator", ["Add", "Div", "Mul", "Sub"])
@pytest.mark.parametrize(("made", "other"), [(1, 10), (10, 1)])
def test_constants_of_two_known_columns_behind_a_cast(
    preset: type[omb.Preset], operator: str, made: int, other: int
) -> None:
    kinds = {1: "float", 10: "float16"}
    model = parsed(
        f"""(float[n, 3, 2, 2] x, float[n, 3, 2, 2] y) => ({kinds[other]}[n, 3, 2, 2] z) <float[2] k = {{-2.5, 0.75}}> {{
        a = Cast <to = {made}> (x) b = Cast <to = {made}> (y) p = MatMul (a, b) c = Cast <to = {other}> (p) d = Cast <to = {other}> (k)
        z = {operator} (c, d) }}"""
    )
    x, y = (np.random.default_rng(i).normal(size=(2, 3, 2, 2)).astype(np.float32) for i in range(2))
    right = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}[operator](
        x @ y, np.float32([-2.5, 0.75])
    )
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x, y])[0], right, rtol=1e-2, atol=2e-2)


BETWEEN = {
    "CastLike": "v = CastLike (p, x)",
    "Slice": "v = Slice (p, zero, most, one)",
    "Pad": "v = Pad (p, none)",
    "Tile": "v = Tile (p, ones)",
    "Transpose": "v = Transpose <perm = [0, 1]> (p)",
    "two Transposes": "t = Transpose (p) u = Relu (t) v = Transpose (u)",
    "Concat": "v = Concat <axis = 0> (p)",
    "ReduceSum": "v = ReduceSum <noop_with_empty_axes = 1> (p)",
    "Einsum": 'v = Einsum <equation = "ij->ij"> (p)',
}


def _of_two(head: str, body: str) -> ModelProto:
    return onnx.parser.parse_model(
        f"""{head} g (float[n, m] x, float[m, k] w) => (float[n, k] y)
        <float[2] c = {{-3, 14}}, int64[1] zero = {{0}}, int64[1] most = {{100}}, int64[1] one = {{1}}, int64[4] none = {{0, 0, 0, 0}}, int64[2] ones = {{1, 1}}>
        {{ {body} }}"""
    )


def _check(preset: type[omb.Preset], made: ModelProto) -> None:
    x, w = (np.random.default_rng(i).uniform(0, 1, (2, 2)).astype(np.float32) for i in range(2))
    right = omb.OrtCpuBackend.prepare(made).run([x, w])[0]
    np.testing.assert_allclose(preset.prepare(made, fallback="full").run([x, w])[0], right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("between", BETWEEN)
def test_behind_what_changes_nothing(preset: type[omb.Preset], between: str) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]>'
    _check(preset, _of_two(head, f"p = MatMul (x, w) {BETWEEN[between]} y = Add (v, c)"))


@pytest.mark.parametrize(
    ("opset", "body"),
    [
        (7, "p = MatMul (x, w) y = Add (p, c)"),
        (17, "s = Shape (w) k = ConstantOfShape (s) p = MatMul (x, k) y = Add (p, c)"),
        (17, "p = MatMul (x, w) y = com.microsoft.BiasGelu (p, c)"),
        (17, "p = MatMul (x, w) y = com.microsoft.FastGelu (p, c)"),
        (11, "p = com.microsoft.FusedMatMul (x, w) r = Relu (p) y = Mul (r, c)"),
    ],
)
def test_older_opsets_and_other_operators(preset: type[omb.Preset], opset: int, body: str) -> None:
    _check(preset, _of_two(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]>', body))


@pytest.mark.parametrize("condition", [True, False])
def test_branches_whose_constants_have_one_name(preset: type[omb.Preset], condition: bool) -> None:
    branch = "{name} () => (float[n, k] {name}_y) {{ cc = Constant <value = {constant}> () {name}_p = MatMul (x, w) {name}_y = Mul ({name}_p, cc) }}"
    then = branch.format(name="then", constant="float {5}")
    other = branch.format(name="other", constant="float[2] {-3, 14}")
    body = (
        f"b = Constant <value = bool {{{int(condition)}}}> () y = If (b) <then_branch = {then}, else_branch = {other}>"
    )
    _check(preset, _of_two('<ir_version: 8, opset_import: ["": 17]>', body))


@pytest.mark.parametrize("sizes", ["[2, 2]", "[2, -1]", "[-1, -1]"])
@pytest.mark.parametrize("made", ["value", "output", "input"])
def test_declared_sizes_of_weights_are_not_relied_on(openvino: type[omb.Preset], made: str, sizes: str) -> None:
    """Only those of constants: OpenVINO does not read what is declared of computed values, and a negative size is none."""
    inputs = f"float[m, k] a, float{sizes} w" if made == "input" else "float[m, k] a, float[n] b, int64[2] s"
    outputs = f"float[p, q] y, float{sizes} w" if made == "output" else "float[p, q] y"
    value = f", float{sizes} w" if made == "value" else ""
    body = ("" if made == "input" else "w = Reshape (b, s) ") + "y = Gemm (a, w, c)"
    head = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => ({outputs})'
    prepared = openvino.prepare(onnx.parser.parse_model(f"{head} <float[2] c = {{1.5, -2.5}}{value}> {{ {body} }}"))
    weights = np.float32([[1, 2], [3, 4]])
    for rows in (1, 2, 3):
        a = np.random.default_rng(rows).uniform(-1, 1, (rows, 2)).astype(np.float32)
        feeds = [a, weights] if made == "input" else [a, weights.ravel(), np.array([2, 2])]
        np.testing.assert_allclose(prepared.run(feeds)[0], a @ weights + np.float32([1.5, -2.5]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("shape", "is_apart"), [("1, 4", False), ("2, 1", False), ("1, 1", True)])
def test_a_computed_constant_of_other_sizes_stays(openvino: type[omb.Preset], shape: str, is_apart: bool) -> None:
    """A position bias has one for each head, whatever sizes a run tells."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, 4, q, d] a, float[n, 4, d, k] b) => (float[n, 4, q, k] y)
        <float[{shape}, 1, 1] c = {{{", ".join("1234"[: 4 if "4" in shape else 2 if "2" in shape else 1])}}}, int64[1] first = {{0}}, int64[1] last = {{3}}, int64[1] end = {{4}}, int64[1] one = {{1}}> {{
        s = Shape (a) size = Slice (s, first, one) keys = Shape (b) width = Slice (keys, last, end)
        sizes = Concat <axis = 0> (one, one, one, width) bias = Expand (c, sizes) t = MatMul (a, b) y = Add (t, bias) }}"""
    if shape == "2, 1":
        text = text.replace("float[n, 4, q, d] a", "float[2, 4, q, d] a")
    prepared = openvino.prepare(onnx.parser.parse_model(text))
    assert ("columns_apart" in [change.pass_name for change in prepared.adaptations]) is is_apart
    rng = np.random.default_rng(1)
    right = omb.OrtCpuBackend.prepare(onnx.parser.parse_model(text))
    for keys in (2, 3, 2):
        operands = [rng.uniform(-1, 1, size).astype(np.float32) for size in ((2, 4, 2, 3), (2, 4, 3, keys))]
        np.testing.assert_allclose(prepared.run(operands)[0], right.run(operands)[0], rtol=1e-4, atol=1e-6)
