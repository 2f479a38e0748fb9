# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO makes of values that are known before anything runs, or of their range, is right or rewritten."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import expected

#: Just inside and just outside of int32, and far away.
FAR = "-590759595435091475, -2147483649, -2147483648, -5, 7, 2147483647, 2147483648, 4294967301, 9223372036854775807"


def parsed(graph: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')


def check(preset: type[omb.Preset], model: ModelProto, *runs: list[np.ndarray]) -> omb.PreparedModel:
    prepared = preset.prepare(model)
    for feeds in runs:
        for got, right in zip(prepared.run(feeds), expected(model, *feeds), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-6)
    return prepared


ABSOLUTES = {
    "of a constant": "() => (int32[2] y) <int32[2] c = {-15, 3}> { s = Sign (c) y = Abs (s) }",
    "of 8 bits": "() => (int8[2] y) <int8[2] c = {-128, 3}> { y = Abs (c) }",
    "of a float": "() => (float[2] y) <float[2] c = {-1.5, 3}> { s = Floor (c) y = Abs (s) }",
}


@pytest.mark.parametrize("form", ABSOLUTES)
def test_the_absolute_of_what_is_computed_ahead(openvino: type[omb.Preset], form: str) -> None:
    check(openvino, parsed(ABSOLUTES[form]), [])


def test_the_absolute_of_a_size_less_another(openvino: type[omb.Preset]) -> None:
    model = parsed("(float[n] x) => (int64[1] y) <int64 c = {10}> { s = Shape (x) d = Sub (s, c) y = Abs (d) }")
    check(openvino, model, [np.zeros(3, np.float32)], [np.zeros(20, np.float32)])


@pytest.mark.parametrize("axis", ["", "<axis = 1>"])
def test_choosing_nothing(openvino: type[omb.Preset], axis: str) -> None:
    shape = "[2, m]" if axis else "[m]"
    text = f"(float[2, n] x) => (float{shape} y) <bool[1] c = {{0}}> {{ y = Compress {axis} (x, c) }}"
    check(openvino, parsed(text), [np.ones((2, 3), np.float32)])


@pytest.mark.parametrize("axis", ["", "<axis = 1>"])
def test_choosing_nothing_on_the_execution_provider(openvino_ep: type[omb.Preset], axis: str) -> None:
    shape = "[2, m]" if axis else "[m]"
    text = f"""(float[2, n] x) => (float{shape} y, float[2, n] z) <bool[1] c = {{0}}> {{
        a = Sin (x) b = Tanh (a) z = Exp (b) y = Compress {axis} (b, c)
    }}"""
    prepared = openvino_ep.prepare(parsed(text))
    assert {n.op_type: n.provider for n in prepared.placement()}["Tanh"] == "OpenVINOExecutionProvider"
    x = np.ones((2, 3), np.float32)
    for got, wanted in zip(prepared.run([x]), expected(parsed(text), x), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("window", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_a_window_beside_a_node_that_is_mended(openvino: type[omb.Preset], window: str) -> None:
    text = f"(int64 n, float[2] x) => (float[m] y, float[1] z) {{ y = {window} (n) z = ReduceL2 <axes = [0]> (x) }}"
    prepared = openvino.prepare(parsed(text, 17))
    for size in (5, 8):
        right = expected(parsed(text, 17), np.array(size), np.ones(2, np.float32))
        for got, wanted in zip(prepared.run([np.array(size), np.ones(2, np.float32)]), right, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        '() => (string[m] y) { c = Constant <value_strings = ["a", "b"]> () y = Unique (c) }',
        '() => (int64[m] i) <string[4] c = {"a", "b", "c", "d"}> { y, i = Unique (c) }',
        '(float x) => (float z) <string[2] c = {"a", "b"}> { y = Unique (c) s = Size (y) f = CastLike (s, x) z = Add (x, f) }',
    ],
)
def test_constant_strings_are_refused_before_anything_computes_with_them(openvino: type[omb.Preset], text: str) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="nothing with strings"):
        openvino.prepare(parsed(text))


def test_of_a_shape_no_element_matters(openvino: type[omb.Preset]) -> None:
    text = (
        "(int64[n] x) => (int64[1] y, int64 z) <uint64[2] c = {18446744073709551615, 1}> { y = Shape (x) z = Size (c) }"
    )
    check(openvino, parsed(text), [np.array([2**40, 1])])


@pytest.mark.parametrize("operator", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@pytest.mark.parametrize("order", ["x, c", "c, x"])
def test_a_constant_beyond_int32_is_compared_with(openvino: type[omb.Preset], operator: str, order: str) -> None:
    model = parsed(f"(int64[n, 1] x) => (bool[n, 9] y) <int64[9] c = {{{FAR}}}> {{ y = {operator} ({order}) }}")
    numbers = [-(2**31), -(2**31) + 1, -(2**24) - 1, -5, 0, 7, 2**24 + 1, 2**31 - 2, 2**31 - 1]
    check(openvino, model, [np.array(numbers)[:, None]])


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceMean", "ReduceSum", "ReduceSumSquare"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_integers_along_axes_known_at_run_time(
    openvino: type[omb.Preset], operator: str, kind: str, keepdims: int
) -> None:
    text = f"({kind}[3, 4] x, int64[1] a) => ({kind}[...] y) {{ y = {operator} <keepdims = {keepdims}> (x, a) }}"
    model = parsed(text.replace("[...] y", " y"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    largest = 2**12 if operator == "ReduceSumSquare" else 2**27
    x = np.random.default_rng(4).integers(2 - largest, largest - 2, (3, 4)).astype(kind)
    check(openvino, model, [x, np.array([0])], [x + 1, np.array([-1])])


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("operator", "kind"),
    [("ReduceSum", "uint32"), *((f"Reduce{name}", "int32") for name in ("L1", "Mean", "Sum", "SumSquare"))],
)
def test_sums_along_run_time_axes_on_the_execution_provider(
    openvino_ep: type[omb.Preset], operator: str, kind: str, keepdims: int
) -> None:
    shape = "[k, m, n]" if keepdims else "[k]"
    text = f"({kind}[2, 3, c] x, int64[2] a) => ({kind}{shape} y) {{ y = {operator} <keepdims = {keepdims}> (x, a) }}"
    most = 2**13 if operator == "ReduceSumSquare" else 2**27
    x = np.random.default_rng(4).integers(most // 2, most, (2, 3, 2)).astype(kind)
    made = parsed(text)
    prepared = openvino_ep.prepare(made)
    for values, axes in ((x, (0, 2)), (x[..., :1] + np.ones(1, kind), (-1, 0)), (x, (2, 1))):
        (right,) = expected(made, values, np.array(axes))
        np.testing.assert_array_equal(prepared.run([values, np.array(axes)])[0], right)


@pytest.mark.parametrize("exponents", ["0, 1, 3", "-1, 2, 17"])
def test_integers_to_whole_powers_that_are_floats(openvino: type[omb.Preset], exponents: str) -> None:
    model = parsed(f"(int32[n, 3] x) => (int32[n, 3] y) <float[3] e = {{{exponents}}}> {{ y = Pow (x, e) }}")
    prepared = openvino.prepare(model)
    x = np.array([[1, -3, 2], [-1, 5001, -3]], np.int32)
    powers = [int(e) for e in exponents.split(",")]
    right = [[int(n**e) if e >= 0 else int(1 / n) for n, e in zip(row, powers, strict=True)] for row in x.tolist()]
    np.testing.assert_array_equal(prepared.run([x])[0], np.array(right, np.int32))


def test_the_bits_of_uint16_are_inverted_within_it(openvino: type[omb.Preset]) -> None:
    model = parsed("(uint16[3] x) => (float[3] y) { n = BitwiseNot (x) y = Cast <to = 1> (n) }")
    check(openvino, model, [np.array([0, 1, 65535], np.uint16)])


def test_a_like_cast_that_changes_no_type_reads_its_own_input(openvino: type[omb.Preset]) -> None:
    model = parsed("(float[n] x) => (float[m] y) <float c = {1}> { y = CastLike (x, c) }", 19)
    check(openvino, model, *([np.arange(n, dtype=np.float32)] for n in (50, 3, 50)))


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        ('Upsample <mode = "linear", scales = [1.0, 1.0, 1.0, 1.0]> (x)', 7),
        ('Upsample <mode = "linear"> (x, s)', 9),
        ('Resize <mode = "linear"> (x, s)', 10),
        ('Resize <mode = "cubic"> (x, , s)', 13),
        ('Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , s)', 19),
    ],
)
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_integers_that_are_scaled_by_one(openvino: type[omb.Preset], node: str, opset: int, kind: str) -> None:
    given = "" if opset < 9 else "<float[4] s = {1, 1, 1, 1}>"
    model = parsed(f"({kind}[a, b, c, d] x) => ({kind}[e, f, g, h] y) {given} {{ y = {node} }}", opset)
    prepared = openvino.prepare(model)
    x = np.arange(2**30, 2**30 + 24).reshape(1, 2, 3, 4).astype(kind)
    for values in (x, -x[..., 1:, 1:]):
        np.testing.assert_array_equal(prepared.run([values])[0], values)
