# SPDX-License-Identifier: Apache-2.0
"""OpenVINO moves arithmetic before an Expand: a size of 0 that a run tells was 1 in the result."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

RIGHT = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
    "Pow": np.power,
}
SHAPES = ([2, 3], [0, 3], [2, 0], [0, 0], [2, 3])


def parsed(graph: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {graph}')


def prepare(preset: type[omb.Preset], model: ModelProto) -> omb.PreparedModel:
    return preset.prepare(model, fallback="full") if preset.name == "OrtOpenvino" else preset.prepare(model)


@pytest.mark.parametrize("operator", RIGHT)
@pytest.mark.parametrize("operand", ["float", "float[1]", "float[1, 1]"])
@pytest.mark.parametrize("order", ["z, c", "c, z"])
def test_arithmetic_behind_an_expand(preset: type[omb.Preset], operator: str, operand: str, order: str) -> None:
    model = parsed(
        f"(int64[2] s, float[1, 1] x) => (float[a, b] y) <{operand} c = {{2}}> {{ z = Expand (x, s) y = {operator} ({order}) }}"
    )
    prepared = prepare(preset, model)
    for shape in SHAPES:
        made = prepared.run([np.array(shape), np.float32([[3]])])[0]
        pair = [np.full(shape, 3, np.float32), np.float32(2)]
        right = RIGHT[operator](*(pair if order == "z, c" else pair[::-1]))
        assert made.shape == right.shape
        np.testing.assert_allclose(made, right, rtol=1e-6)


@pytest.mark.parametrize("kind", ["float", "int32"])
def test_arithmetic_behind_a_constant_of_shape(preset: type[omb.Preset], kind: str) -> None:
    model = parsed(
        f"""(int64[2] s) => ({kind}[a, b] y) <{kind} c = {{2}}> {{
        z = ConstantOfShape <value = {kind}[1] {{3}}> (s) y = Add (z, c) }}"""
    )
    prepared = prepare(preset, model)
    for shape in SHAPES:
        np.testing.assert_array_equal(prepared.run([np.array(shape)])[0], np.full(shape, 5))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    "nodes", ["i = Identity (z) y = Add (i, c)", "y = Reciprocal (z)", "y = Clip (z, c)", "y = Add (z, c)"]
)
def test_what_becomes_arithmetic(preset: type[omb.Preset], nodes: str, opset: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 6, opset_import: ["": {opset}]> g (int64[2] s, float[1, 1] x) => (float[a, b] y) {{
            c = Constant <value = float {{2}}> () z = Expand (x, s) {nodes} }}"""
    )
    prepared = prepare(preset, model)
    for shape in SHAPES:
        made = prepared.run([np.array(shape), np.float32([[4]])])[0]
        assert made.shape == tuple(shape)
        np.testing.assert_allclose(made, {"R": 0.25, "C": 4}.get(nodes[4], 6))


def test_an_operand_of_the_same_shape(preset: type[omb.Preset]) -> None:
    model = parsed(
        "(float[a, b] x, float[1, b] w) => (float[a, b] y) { s = Shape (x) z = Expand (w, s) y = Add (z, x) }"
    )
    prepared = prepare(preset, model)
    for rows in (2, 0, 3):
        x, w = np.ones((rows, 2), np.float32), np.float32([[1, 2]])
        np.testing.assert_array_equal(prepared.run([x, w])[0], x + w)


def test_a_shape_that_is_known_is_left_alone(preset: type[omb.Preset]) -> None:
    model = parsed(
        "(float[1, 1] x) => (float[2, 3] y) <int64[2] s = {2, 3}, float c = {2}> { z = Expand (x, s) y = Add (z, c) }"
    )
    assert prepare(preset, model).adaptations == ()
