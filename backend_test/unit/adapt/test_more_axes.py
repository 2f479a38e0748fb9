# SPDX-License-Identifier: Apache-2.0
"""Arithmetic with a constant of one element that has more axes than what it is computed with: OpenVINO took the constant for a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_broadcasts import RIGHT

Array = np.ndarray[Any, Any]

COMPUTED = {**RIGHT, "Sum": np.add, "Mean": lambda x, k: (x + k) / 2}
#: What is before it, and the same of numpy.
BEFORE = {
    "v = Reshape (x, flat)": lambda x: x.reshape(6, 4),
    "v = Flatten <axis = 2> (x)": lambda x: x.reshape(6, 4),
    "u = Reshape (x, flat) v = Relu (u)": lambda x: x.reshape(6, 4),
    "v = Transpose <perm = [2, 0, 1]> (x)": lambda x: x.transpose(2, 0, 1),
    "u = ReduceMax <keepdims = 1> (x, one) v = Squeeze (u, one)": lambda x: x.max(1),
    "v = Gather <axis = 1> (x, number)": lambda x: x[:, 1],
    "v = LayerNormalization (x, scale)": lambda x: (
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    ),
}


def _check(
    preset: type[omb.Preset],
    before: str,
    arithmetic: str,
    right: Array,
    sizes: str = "2, 3, 4",
    opset: int = 18,
    constants: str = "",
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[{sizes}] x) => (float[{", ".join("abcdef"[: right.ndim])}] y)
        <{constants}int64[2] flat = {{6, 4}}, int64[1] one = {{1}}, int64[1] last = {{-1}}, int64 number = {{1}}, float[4] scale = {{1, 1, 1, 1}},
        float[1, 1, 1, 1] k = {{1.5}}, float[1, 1] less = {{1.5}}, float[1] short = {{1.5}}> {{ {before} {arithmetic} }}"""
    )
    got = preset.prepare(model, fallback="full").run([_x()])[0]
    assert got.shape == right.shape
    np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def _x() -> Array:
    return np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("operator", COMPUTED)
@pytest.mark.parametrize("sizes", ["2, 3, 4", "n, 3, 4", "a, b, c"])
def test_arithmetic(preset: type[omb.Preset], operator: str, sizes: str) -> None:
    k = np.full((1, 1, 1, 1), 1.5, np.float32)
    _check(preset, "v = Reshape (x, flat)", f"y = {operator} (v, k)", COMPUTED[operator](_x().reshape(6, 4), k), sizes)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("operator", ["Add", "Div"])
def test_what_is_before_it(preset: type[omb.Preset], before: str, operator: str) -> None:
    k = np.full((1, 1, 1, 1), 1.5, np.float32)
    _check(preset, before, f"y = {operator} (v, k)", COMPUTED[operator](BEFORE[before](_x()), k), "n, 3, 4")


def test_of_two_constants_the_one_with_more_axes_counts(preset: type[omb.Preset]) -> None:
    _check(preset, "v = Reshape (x, flat)", "y = Sum (v, less, k)", _x().reshape(1, 1, 6, 4) + 3)


@pytest.mark.parametrize(
    ("nodes", "right"),
    [
        ("v = Reshape (x, flat) y = Sum (less, v, k)", lambda x: x.reshape(1, 1, 6, 4) + 3),
        (
            "v = MatMul (x, square) y = Add (v, row)",
            lambda x: (x @ np.diag(np.arange(1, 5)) + np.arange(4))[None].astype(np.float32),
        ),
        (
            "v = MatMul (x, square) y = Sub (row, v)",
            lambda x: (np.arange(4) - x @ np.diag(np.arange(1, 5)))[None].astype(np.float32),
        ),
        (
            "q = QuantizeLinear (x, s, z) v = DequantizeLinear (q, s, z) y = Add (k, v)",
            lambda x: np.rint(x / 0.25)[None] * 0.25 + 1.5,
        ),
    ],
)
def test_other_places_and_constants(preset: type[omb.Preset], nodes: str, right: Callable[[Array], Array]) -> None:
    constants = f"""float[4, 4] square = {{{", ".join(str(v) for v in np.diag(np.arange(1, 5)).ravel())}}}, float[1, 1, 1, 4] row = {{0, 1, 2, 3}},
        float s = {{0.25}}, uint8 z = {{0}}, """
    _check(preset, "", nodes, right(_x()), "n, 3, 4", constants=constants)


def test_sizes_that_a_run_tells(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[n, 3, 4] x) => (int64[a] y) <int64 i = {0}, int64[1] two = {2}> {
        s = Shape (x) v = Gather (s, i) y = Mul (v, two) }"""
    )
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run([_x()])[0], [4])


def test_a_wrong_declaration_is_not_believed(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float[a, b] y) <int64[2] flat = {6, 4}, float[1, 1] k = {1}> {
        v = Reshape (x, flat) y = Add (v, k) }"""
    )
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, ["a"]))
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([_x()])[0], _x().reshape(6, 4) + 1)


def test_a_wrong_declaration_in_a_body_is_not_believed(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float[a, b, c] y) <int64 n = {2}, bool go = {1}, float[1, 1] k = {1}> {
        y = Loop (n, go, x) <body = body (int64 i, bool c, float s) => (bool d, float t) { d = Identity (c) u = Neg (s) t = Add (u, k) }> }"""
    )
    np.testing.assert_allclose(openvino.prepare(model).run([_x()])[0], _x(), rtol=1e-6)


def test_nodes_of_another_domain_without_inputs(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "cu": 1]> g (float[2, 3, 4] x) => (float[a, b] y) <int64[2] flat = {6, 4}, float[1, 1] k = {1}> {
        w = cu.Identity () v = Reshape (x, flat) y = Add (v, k) }"""
    )
    np.testing.assert_allclose(openvino.prepare(model).run([_x()])[0], _x().reshape(6, 4) + 1)


@pytest.mark.parametrize("constant", ["Identity (k)", "Unsqueeze (less, one)"])
def test_computed_constants(preset: type[omb.Preset], constant: str) -> None:
    axes = 4 if "Identity" in constant else 3
    right = _x().reshape((1,) * (axes - 2) + (6, 4)) - 1.5
    _check(preset, f"c = {constant} v = Reshape (x, flat)", "y = Sub (v, c)", right)


def test_a_value_without_axes(preset: type[omb.Preset]) -> None:
    _check(
        preset,
        "w = ReduceSum <keepdims = 1> (x) v = Squeeze (w)",
        "y = Add (v, short)",
        np.atleast_1d(_x().sum() + np.float32(1.5)),
    )


@pytest.mark.parametrize("opset", [7, 11])
def test_older_opsets(preset: type[omb.Preset], opset: int) -> None:
    _check(preset, "v = Reshape (x, flat)", "y = Mul (v, k)", _x().reshape(1, 1, 6, 4) * 1.5, opset=opset)


@pytest.mark.parametrize(
    "body",
    [
        "v = Reshape (x, flat) y = Add (v, less)",
        "v = Neg (x) y = Add (v, short)",
        "y = Add (x, k)",
    ],
)
def test_others_are_not_touched(openvino: type[omb.Preset], body: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float y)
        <int64[2] flat = {{6, 4}}, float[1, 1, 1, 1] k = {{1}}, float[1, 1] less = {{1}}, float[1] short = {{1}}> {{ {body} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert "axes_given_before" not in {made.pass_name for made in openvino.prepare(model).adaptations}


def test_what_is_computed_of_open_sizes_is_no_constant(openvino: type[omb.Preset]) -> None:
    """Of what only a run tells OpenVINO makes no constant; of a declared size it does."""
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[{}] x, float[2, 3, 4] v) => (float[a, b, c, d] y) <int64 i = {{0}}, int64[3] axes = {{0, 1, 2}}, int64[2] flat = {{6, 4}}> {{
        c = Identity (x) s = Shape (c) n = Gather (s, i) w = Unsqueeze (n, axes) f = Cast <to = 1> (w) u = Reshape (v, flat) y = Add (u, f) }}"""
    for sizes, is_given in (("n, m", False), ("1, m", True)):
        prepared = openvino.prepare(
            onnx.parser.parse_model(text.format(sizes).replace("float[a, b, c, d] y", "float[a, b, c] y"))
        )
        assert ("axes_given_before" in {made.pass_name for made in prepared.adaptations}) == is_given
        for count in (1,) if is_given else (1, 2):
            got = prepared.run([np.zeros((count, 5), np.float32), _x()])[0]
            np.testing.assert_allclose(got, _x().reshape(1, 6, 4) + count, rtol=1e-6)


@pytest.mark.parametrize("sizes", ["3, 4", "n, 4", "a, b"])
@pytest.mark.parametrize("moved", ["Gather (u, one)", "Slice (u, one, end)", "Cast <to = 1> (t)"])
def test_sizes_behind_the_constant(openvino: type[omb.Preset], sizes: str, moved: str) -> None:
    """Exporters of transformers compute the places of a mask so: they are right as they are."""
    before = "t = Gather (u, one) v = " if "Cast" in moved else "v = "
    kind = "float" if "Cast" in moved else "int64"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{sizes}] x) => ({kind}[a, b, c, d] y)
        <int64[1] one = {{1}}, int64[1] end = {{2}}, {kind}[1, 1, 1, 1] k = {{3}}> {{ u = Shape (x) {before}{moved} y = Mul (k, v) }}"""
    )
    prepared = openvino.prepare(model)
    (got,) = prepared.run([np.ones((3, 4), np.float32)])
    assert (got.shape, got.item()) == ((1, 1, 1, 1), 12)
    assert "axes_given_before" not in {made.pass_name for made in prepared.adaptations}


@pytest.mark.parametrize("scaled", ["Neg (g)", "Mul (g, two)", "Sub (two, g)"])
@pytest.mark.parametrize("moved", ["v = Identity (u)", "v = Squeeze (u)", "v = Reshape (u, one)"])
def test_scaled_sizes_behind_the_constant(openvino: type[omb.Preset], scaled: str, moved: str) -> None:
    right = {"Neg (g)": -12, "Mul (g, two)": 24, "Sub (two, g)": -6}[scaled]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[n, m] x) => (int64[a, b, c, d] y)
        <int64[1] one = {{1}}, int64 two = {{2}}, int64[1, 1, 1, 1] k = {{3}}> {{ s = Shape (x) g = Gather (s, one) u = {scaled} {moved} y = Mul (k, v) }}"""
    )
    (got,) = openvino.prepare(model).run([np.ones((3, 4), np.float32)])
    assert (got.shape, got.item()) == ((1, 1, 1, 1), right)
