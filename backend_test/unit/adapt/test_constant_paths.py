# SPDX-License-Identifier: Apache-2.0
"""What is computed of constants alone stays as it is, run after run, whatever reads it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed
from onnx_multi_backend.engines.openvino import constant_paths
from onnx_multi_backend.models.contents import Contents

X = np.float32([[[[10, 20], [30, 40]]]])
W = np.float32([[[[1, 2], [3, 4]]]])
MADE = {
    "Elu (w)": W,
    "Conv (c, w)": np.float32([[[[37, 47], [67, 77]]]]),
    "AveragePool <kernel_shape = [2, 2]> (c)": np.float32([[[[3, 4], [6, 7]]]]),
    "GatherElements <axis = 2> (w, i)": np.float32([[[[1, 4], [3, 2]]]]),
}
CONSTANTS = """float[1, 1, 2, 2] w = {1, 2, 3, 4}, float[1, 1, 3, 3] c = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64 n = {2}, bool go = {1},
    int64[1, 1, 2, 2] i = {0, 1, 1, 0}"""


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("behind", ["Add (p, x)", "Div (p, x)", "Sub (p, x)"])
def test_a_run_starts_with_the_same_constants_as_the_one_before(
    openvino: type[omb.Preset], made: str, behind: str
) -> None:
    shape = "float[1, 1, 2, 2]"
    prepared = openvino.prepare(parsed(f"({shape} x) => ({shape} y) <{CONSTANTS}> {{ p = {made} y = {behind} }}"))
    right = {"Add": np.add, "Div": np.divide, "Sub": np.subtract}[behind.split()[0]](MADE[made], X)
    for _ in range(3):
        np.testing.assert_allclose(prepared.run(X)[0], right, rtol=1e-6)
    assert any("while the model is loaded" in a.change for a in prepared.adaptations)


def test_a_step_of_a_loop_starts_with_the_same_constants_as_the_one_before(openvino: type[omb.Preset]) -> None:
    shape = "float[1, 1, 2, 2]"
    prepared = openvino.prepare(
        parsed(
            f"""({shape} x) => ({shape} y) <{CONSTANTS}> {{
            y = Loop (n, go, x) <body = b (int64 k, bool c0, {shape} v) => (bool d, {shape} u) {{
                d = Identity (c0) p = Elu (w) u = Add (p, v) }}> }}"""
        )
    )
    for _ in range(3):
        np.testing.assert_array_equal(prepared.run(X)[0], X + 2 * W)


def test_an_image_that_is_known_is_convolved_once(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(
        parsed(
            """(uint8 zero, int32[1] bias) => (uint8[1, 1, 2, 2] y) <
            int8[1, 1, 2, 2] a = {1, 2, 3, 4}, int8[1, 1, 1, 1] b = {5}, float one = {1}, int8 none = {0}> {
            y = QLinearConv (a, one, none, b, one, none, one, zero, bias) }"""
        )
    )
    for _ in range(4):
        made = prepared.run([np.array(80, np.uint8), np.int32([25])])[0]
        np.testing.assert_array_equal(made.ravel(), [110, 115, 120, 125])


def test_constants_that_are_folded_anyway_are_left_alone(openvino: type[omb.Preset]) -> None:
    model = parsed("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { e = Exp (w) p = Neg (e) y = Add (p, x) }")
    assert not openvino.prepare(model).adaptations


def test_what_is_not_zero_of_what_is_known(openvino: type[omb.Preset]) -> None:
    """OpenVINO refused it."""
    model = parsed(
        """() => (uint8[3] q, float s, uint8 z, int64[1, n] y) <float[3] c = {0, 1, 2}> {
        q, s, z = DynamicQuantizeLinear (c) y = NonZero (q) }"""
    )
    *_, places = openvino.prepare(model).run([])
    np.testing.assert_array_equal(places, [[1, 2]])


@pytest.mark.parametrize("operator", ["Elu", "Selu", "HardSigmoid", "Celu"])
@pytest.mark.parametrize(
    "product",
    [
        "z = Gemm <transA = 1> (e, f)",
        "z = Gemm <transA = 1> (e, b)",
        "z = Gemm <transA = 1> (a, f)",
        "t = Transpose (e) z = MatMul (t, f)",
        "r = Gemm <transA = 1> (e, f) s = Transpose (r) g = Elu (s) z = Gemm <transA = 1, transB = 1> (g, f)",
    ],
)
@pytest.mark.parametrize("end", ["w = Mul (z, u)", "w = Identity (z) v = Neg (u)"])
def test_a_product_of_constants_is_right(preset: type[omb.Preset], operator: str, product: str, end: str) -> None:
    numbers = np.random.default_rng(0)
    named = {name: numbers.standard_normal((4, size)).astype(np.float32) for name, size in (("a", 2), ("b", 3))}
    outputs = "float[p, q] w, float[1] v" if "v =" in end else "float[p, q] w"
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g (float[1] u) => ({outputs}) {{
        e = {operator} (a) f = {operator} (b) {product} {end} }}"""
    )
    del model.graph.initializer[:]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in named.items())
    u = np.full(1, 2, np.float32)
    right = ReferenceEvaluator(model).run(None, {"u": u})
    prepared = preset.prepare(model, fallback="full")
    for _ in range(2):
        np.testing.assert_allclose(prepared.run(u)[0], right[0], rtol=1e-4, atol=1e-5)


def test_shapes_of_constants_are_not_looked_for_in_what_openvino_read() -> None:
    """PyTorch's exporter writes the shape of an Expand so. The second has a value that OpenVINO does not fold."""
    shape = "q = Shape (w) e = Equal (q, s) t = Where (e, q, s)"
    head = "(float[n] x) => (float[p] y) <float[2] w = {1, 2}, int64[1] s = {-1}>"
    plain, other = (
        parsed(f"{head} {{ {made} z = Expand (x, t) y = {end} }}")
        for made, end in (
            (shape, "Add (z, w)"),
            (f"{shape} v = Elu (w)", "Add (z, v)"),
        )
    )
    assert constant_paths.fold(None, Contents(plain)) == ()
    with pytest.raises(AttributeError):
        constant_paths.fold(None, Contents(other))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("operator", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_a_loss_of_constants_is_weighted_anew_in_each_run(
    openvino: type[omb.Preset], operator: str, reduction: str
) -> None:
    """OpenVINO picks the numbers of the labels before the first run, and multiplied them by the weights in place."""
    shape = "float[n]" if reduction == "none" else "float"
    model = parsed(
        f"""(float[3] w) => ({shape} y) <float[2, 3] x = {{-1, -1, 1, 0, 0, 0}}, int32[2] labels = {{0, 2}}> {{
            y = {operator} <reduction = "{reduction}"> (x, labels, w) }}"""
    )
    prepared = openvino.prepare(model)
    for first in (1, 2, 3):
        w = np.array([first, 5, 0.5], np.float32)
        (right,) = ReferenceEvaluator(model).run(None, {"w": w})
        np.testing.assert_allclose(prepared.run([w])[0], right, rtol=1e-5)


@pytest.mark.parametrize("kind", ["float", "float16", "int32"])
@pytest.mark.parametrize("stored", ["uint8", "int8"])
@pytest.mark.parametrize("product", ["Mul (f, v)", "Mul (v, f)"])
def test_a_product_of_a_small_constant_in_a_quantized_model(
    openvino: type[omb.Preset], kind: str, stored: str, product: str
) -> None:
    """A QuantizeLinear anywhere in the model keeps constants of 8 bits as they are stored."""
    to = {"float": 1, "float16": 10, "int32": 6}[kind]
    model = parsed(
        f"""(float[2, 1] x, float[3] q) => (float[2, 1] y, uint8[3] z) <float s = {{0.5}}> {{ c = Constant <value = {stored}[2, 1] {{17, 13}}> ()
        f = Cast <to = {to}> (c) v = Cast <to = {to}> (x) p = {product} y = Cast <to = 1> (p) z = QuantizeLinear (q, s) }}"""
    )
    prepared = openvino.prepare(model)
    x = np.float32([[2], [3]])
    for _ in range(3):
        np.testing.assert_array_equal(prepared.run({"x": x, "q": np.ones(3, np.float32)})[0], [[34], [39]])


@pytest.mark.parametrize("operator", ["Mul", 'BitShift <direction = "LEFT">'])
def test_bytes_of_a_run_and_bytes_of_the_model(openvino: type[omb.Preset], operator: str) -> None:
    model = parsed(
        f"""(uint8[2, 1] x, float[3] q) => (uint8[2, 1] y, uint8[3] z) <float s = {{0.5}}, uint8[2, 1] c = {{17, 13}}> {{
        y = {operator} (c, x) z = QuantizeLinear (q, s) }}"""
    )
    prepared = openvino.prepare(model)
    right = [[34], [39]] if operator == "Mul" else [[68], [104]]
    for _ in range(3):
        feeds = {"x": np.uint8([[2], [3]]), "q": np.ones(3, np.float32)}
        np.testing.assert_array_equal(prepared.run(feeds)[0], right)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("order", ["a, b, x", "b, a, x, x", "x, a, b", "a, x, b"])
@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_an_extreme_of_two_constants_and_more(preset: type[omb.Preset], operator: str, order: str, kind: str) -> None:
    """Each run wrote its result over that of the constants."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g ({kind}[2, 3] x) => ({kind}[2, 3] y)
        <{kind}[2, 3] a = {{50, 60, 70, 40, 90, 20}}, {kind}[1, 3] b = {{55, 45, 80}}> {{ y = {operator} ({order}) }}"""
    )
    rep = preset.prepare(model, fallback="full")
    extreme = np.maximum if operator == "Max" else np.minimum
    a, b = np.array([[50, 60, 70], [40, 90, 20]]), np.array([[55, 45, 80]])
    for number in (100, 0, 56, 100, 3):
        x = np.full((2, 3), number, kind)
        np.testing.assert_array_equal(rep.run(x)[0], extreme(extreme(a, b), x))
