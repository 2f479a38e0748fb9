# SPDX-License-Identifier: Apache-2.0
"""Normalizations that are written out keep the digits of a variance beside a mean that is much larger."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import FunctionProto, TensorProto, defs, helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import computed, rewritten
from onnx_multi_backend.adapt.operators.variance import with_deviations

X = (1000 + np.random.default_rng(0).standard_normal((2, 4, 5))).astype(np.float32)


def normalized(
    axes: tuple[int, ...], shape: tuple[int, ...] = X.shape, inside: float = 1e-5, outside: float = 0
) -> np.ndarray:
    wide = X.astype(np.float64).reshape(shape)
    deviation = np.sqrt(wide.var(axes, keepdims=True) + inside) + outside
    return ((wide - wide.mean(axes, keepdims=True)) / deviation).reshape(X.shape)


FORMS: dict[str, tuple[str, np.ndarray]] = {
    "GroupNormalization": (
        """(float[n, 4, 5] x) => (float[n, 4, 5] y) <float[4] s = {1, 1, 1, 1}, float[4] b = {0, 0, 0, 0}>
        { y = GroupNormalization <num_groups = 2> (x, s, b) }""",
        normalized((2,), (2, 2, 10)),
    ),
    "LayerNormalization": (
        "(float[n, 4, 5] x) => (float[n, 4, 5] y) <float[5] s = {1, 1, 1, 1, 1}> { y = LayerNormalization <axis = -1> (x, s) }",
        normalized((2,)),
    ),
    "MeanVarianceNormalization": (
        "(float[n, 4, 5] x) => (float[n, 4, 5] y) { y = MeanVarianceNormalization <axes = [0, 2]> (x) }",
        normalized((0, 2), inside=0, outside=1e-9),
    ),
}


@pytest.mark.parametrize("operator", FORMS)
def test_the_body_that_is_written(operator: str) -> None:
    pytest.importorskip("onnxruntime")
    text, right = FORMS[operator]
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}')
    changed, changes = rewritten(made, operator)
    assert [change.pass_name for change in changes] == ["expand_function"]
    np.testing.assert_allclose(computed(changed, X)[0], right, atol=2e-4)


@pytest.mark.parametrize("operator", ["GroupNormalization", "LayerNormalization"])
def test_on_onnx_runtime_in_a_model_that_is_rewritten(ort_cpu: type[omb.Preset], operator: str) -> None:
    """It writes the body of GroupNormalization out itself; the cubic Resize of bytes is what has the model changed."""
    text, right = FORMS[operator]
    text = text.replace("(float[n, 4, 5] x) => (", "(float[n, 4, 5] x, uint8[1, 1, 2, 2] i) => (uint8[a, b, c, d] r, ")
    text = text.replace("}>", "}, int64[4] sizes = {1, 1, 4, 4}>").replace(
        "{ y", '{ r = Resize <mode = "cubic"> (i, "", "", sizes) y'
    )
    prepared = ort_cpu.prepare(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}'))
    found = prepared.run([X, np.zeros((1, 1, 2, 2), np.uint8)])[1]
    np.testing.assert_allclose(found, right, atol=2e-4)


@pytest.mark.parametrize(
    ("operator", "more"), [("BatchNormalization", "m, v"), ("InstanceNormalization", "")], ids=["Batch", "Instance"]
)
def test_an_infinite_scale_on_onnx_runtime_in_a_model_that_is_rewritten(
    ort_cpu: type[omb.Preset], operator: str, more: str
) -> None:
    """The sign of the deviation decides; of a scale that is a constant nothing is written out."""
    text = f"""g (float[n, 2, 2] x, float[2] s, uint8[1, 1, 2, 2] i) => (uint8[a, b, c, d] r, float[n, 2, 2] y)
        <float[2] b = {{1, 1}}, float[2] m = {{2, 2}}, float[2] v = {{1, 1}}, int64[4] sizes = {{1, 1, 4, 4}}>
        {{ r = Resize <mode = "cubic"> (i, "", "", sizes) y = {operator} (x, s, b{", " + more if more else ""}) }}"""
    prepared = ort_cpu.prepare(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}'))
    x, image = np.float32([[[1, 3], [0, 4]]]), np.zeros((1, 1, 2, 2), np.uint8)
    found = prepared.run([x, np.float32([np.inf, -np.inf]), image])[1]
    np.testing.assert_array_equal(found, [[[-np.inf, np.inf], [np.inf, -np.inf]]])


def test_other_bodies_stay() -> None:
    changed = set()
    schemas: Any = defs.get_all_schemas_with_history()
    for schema in schemas:
        for version in schema.function_opset_versions:
            body = FunctionProto.FromString(schema.get_function_with_opset_version(version))
            before = body.SerializeToString(deterministic=True)
            with_deviations(body)
            if body.SerializeToString(deterministic=True) != before:
                changed.add(schema.name)
    assert changed == {"MeanVarianceNormalization"}


def test_another_power_stays() -> None:
    nodes = [
        helper.make_node("Constant", [], ["e"], value=helper.make_tensor("e", TensorProto.FLOAT, [], [3.0])),
        helper.make_node("ReduceMean", ["x"], ["m"]),
        helper.make_node("Pow", ["m", "e"], ["mm"]),
        helper.make_node("Pow", ["x", "e"], ["xx"]),
        helper.make_node("ReduceMean", ["xx"], ["n"]),
        helper.make_node("Sub", ["n", "mm"], ["v"]),
    ]
    body = helper.make_function("d", "f", ["x"], ["v"], nodes, [helper.make_opsetid("", 18)])
    before = body.SerializeToString(deterministic=True)
    with_deviations(body)
    assert body.SerializeToString(deterministic=True) == before
