# SPDX-License-Identifier: Apache-2.0
"""Constants in a row that OpenVINO joins to one, which their type does not hold: they are kept apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb

pytestmark = [
    pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning"),
    pytest.mark.filterwarnings("ignore::onnx_multi_backend.PrecisionWarning"),
]

KINDS: dict[str, tuple[Any, float, float]] = {"float16": (np.float16, 512.0, 1e-3), "float": (np.float32, 1e20, 1e-20)}
FLOAT16 = pytest.mark.parametrize("kind", KINDS)

#: The nodes, and what a number comes to; `b` is a large number, `s` a small one, which is 1 by a large one about.
FORMS: dict[str, tuple[str, str, str]] = {
    "two large factors": ("t = Mul (x, b) y = Mul (b, t)", "s", "x * b * b"),
    "two small factors": ("t = Mul (x, s) y = Mul (t, s)", "b", "x * s * s"),
    "a factor and a divisor": ("t = Mul (x, b) y = Div (t, s)", "s", "x * b / s"),
    "a divisor and a factor": ("t = Div (x, s) y = Mul (t, b)", "s", "x / s * b"),
    "over what changes nothing": ("t = Mul (x, b) n = Neg (t) i = Identity (n) y = Mul (i, b)", "s", "-x * b * b"),
    "three factors": ("t = Mul (x, b) u = Mul (t, s) v = Mul (u, b) y = Mul (v, b)", "s", "x * b * s * b * b"),
    "of a reduction": ("r = ReduceMean <keepdims = 1, axes = [1]> (x) t = Mul (r, b) y = Mul (t, b)", "s", "x * b * b"),
    "a term and a factor": ("t = Sub (x, b) y = Mul (t, b)", "near", "(x - b) * b"),
    "weights and a factor": ("t = MatMul (x, w) y = Mul (t, b)", "s", "x * b * b"),
    "weights and a divisor": ("t = MatMul (x, w) y = Div (t, s)", "s", "x * b / s"),
    "weights of a Gemm": ("t = Gemm (x, w) y = Mul (t, b)", "s", "x * b * b"),
    "a bias and a factor": ("t = MatMul (x, e) u = Sub (t, b) y = Mul (u, b)", "near", "(x - b) * b"),
    "a factor before a convolution": ("t = Mul (x, b) y = Conv (t, f)", "s", "x * b * b"),
    "a factor behind a convolution": ("t = Conv (x, f) y = Mul (t, b)", "s", "x * b * b"),
    "a factor behind a transposed convolution": ("t = ConvTranspose (x, f) y = Mul (t, b)", "s", "x * b * b"),
    "a normalization behind a convolution": (
        "t = Conv (x, f) y = BatchNormalization (t, p, z, z, o)",
        "s",
        "x * b * b",
    ),
    "a factor before a normalization": ("t = Mul (x, b) y = BatchNormalization (t, p, z, z, o)", "s", "x * b * b"),
}


def made_of(nodes: str, kind: str) -> onnx.ModelProto:
    dtype, large, small = KINDS[kind]
    pictures = "Conv" in nodes or "Normalization" in nodes
    shape = "n, 2, 3, 3" if pictures else "n, 2"
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g ({kind}[{shape}] x) => ({kind}[{shape.replace("2", "k", 1)}] y) {{ {nodes} }}'
    )
    one = np.eye(2, dtype=dtype)
    constants = {"b": dtype(large), "s": dtype(small), "w": one * dtype(large), "e": one}
    constants |= {"f": (one * dtype(large))[:, :, None, None], "p": np.full(2, large, dtype)}
    constants |= {"z": np.zeros(2, dtype), "o": np.full(2, 1 - 1e-5, dtype)}
    read = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items() if n in read)
    return made


@FLOAT16
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["openvino", "openvino_ep", "ort_cpu"])
def test_results_are_those_of_each_in_turn(name: str, form: str, kind: str, request: pytest.FixtureRequest) -> None:
    preset = request.getfixturevalue(name)
    nodes, size, formula = FORMS[form]
    dtype, large, small = KINDS[kind]
    model = made_of(nodes, kind)
    prepared = preset.prepare(model)
    shape = (2, 3, 3) if len(model.graph.input[0].type.tensor_type.shape.dim) == 4 else (2,)
    for n in (1, 3):
        number = {
            "s": dtype(small),
            "b": dtype(1 / small if kind == "float" else 1000),
            "near": np.nextafter(dtype(large), dtype(0)),
        }[size]
        x = np.full((n, *shape), number, dtype)
        with np.errstate(over="ignore"):
            right = np.float64(eval(formula, {"x": float(number), "b": float(dtype(large)), "s": float(dtype(small))}))
        got = prepared.run([x])[0].astype(np.float64)
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, np.broadcast_to(right, got.shape), rtol=3e-3 if kind == "float16" else 1e-5)


@FLOAT16
def test_ordinary_constants_are_left_to_be_joined(openvino: type[omb.Preset], kind: str) -> None:
    nodes = "t = Mul (x, h) u = Add (t, h) v = Mul (u, h) w = MatMul (v, m) y = Div (w, h)"
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g ({kind}[n, 2] x) => ({kind}[n, 2] y) {{ {nodes} }}'
    )
    dtype = KINDS[kind][0]
    made.graph.initializer.append(numpy_helper.from_array(dtype(0.3), "h"))
    made.graph.initializer.append(numpy_helper.from_array(np.full((2, 2), 12, dtype), "m"))
    assert "constants_apart" not in {a.pass_name for a in openvino.prepare(made).adaptations}


def test_what_one_node_makes_infinite_by_itself_stays(openvino: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 17]> g (float[n] x) => (float[n] y) <float two = {2}, float none = {0}> { t = Mul (x, two) y = Div (t, none) }'
    )
    assert "constants_apart" not in {a.pass_name for a in openvino.prepare(made).adaptations}


def test_a_node_without_an_operand_is_refused_with_a_typed_error(preset: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[2] b = {2, 3}> {
        t = Mul (x, b) y = Mul (t, ) }"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(made)


def test_a_function_whose_body_lacks_an_operand_is_refused_with_a_typed_error(preset: type[omb.Preset]) -> None:
    """An Adagrad without its gradient."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.preview.training": 1]> g
        (float r, int64 t, float[2] x, float[2] h) => (float[2] x2, float[2] h2) {
        x2, h2 = ai.onnx.preview.training.Adagrad <epsilon = 0.00001> (r, t, x, , h) }"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(made)
