# SPDX-License-Identifier: Apache-2.0
"""Constants that nodes read through an Identity, as exporters write shared ones: they are known as those without one are."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def parsed(graph: str, opset: int = 17) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')


def test_bounds_of_a_slice_along_axes_of_a_run(preset: type[omb.Preset]) -> None:
    """OpenVINO ended the process."""
    model = parsed(
        """(int32[3, 3, 2] x, int64[2] a) => (int32[p, q, r] y) <int64[2] s = {2, 0}, int64[2] e0 = {-100, 2}, int64[2] t = {-1, 1}> {
        e1 = Identity (e0) e = Identity (e1) y = Slice (x, s, e, a, t) }"""
    )
    x = np.arange(18, dtype=np.int32).reshape(3, 3, 2)
    found = preset.prepare(model, fallback="full").run([x, np.array([0, 1])])[0]
    np.testing.assert_array_equal(found, x[::-1, :2])


@pytest.mark.parametrize(
    "between", ["Identity (c)", "Reshape (c, two)", "Transpose (c)", "Unsqueeze (c, zero)", "Expand (c, two)"]
)
@pytest.mark.parametrize("kind", ["uint32", "uint64"])
def test_negative_numbers_as_unsigned_ones(engine: type[omb.Preset], kind: str, between: str) -> None:
    """OpenVINO limits them to int32."""
    model = parsed(
        f"""(float[2] x) => ({kind}[n] y, float[2] z) <int32[2] c = {{3, -2}}, int64[1] two = {{2}}, int64[1] zero = {{0}}> {{
        k = {between} y = Cast <to = {12 if kind == "uint32" else 13}> (k) z = Relu (x) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    if engine.name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="int32"):
            engine.prepare(model)
        return
    found = engine.prepare(model, fallback="full").run([np.ones(2, np.float32)])[0]
    np.testing.assert_array_equal(found.ravel(), np.array([3, -2]).astype(kind))


def test_a_convolution_of_constants_is_the_same_in_each_run(engine: type[omb.Preset]) -> None:
    """OpenVINO 2025.4 adds to the result of the run before."""
    model = parsed(
        """(float[1] b) => (float[1, 1, 2, 2] y) <float[1, 1, 2, 2] d0 = {1, 2, 3, 4}, float[1, 1, 1, 1] w = {2}> {
        d = Identity (d0) y = Conv (d, w, b) }"""
    )
    prepared = engine.prepare(model, fallback="full")
    for bias in (1, 1, 5):
        found = prepared.run([np.float32([bias])])[0]
        np.testing.assert_array_equal(found, np.float32([[[[2, 4], [6, 8]]]]) + bias)


@pytest.mark.parametrize(
    "graph",
    [
        "(float[4, 3] x) => (float[n, 3] y, int64[1] e) <int64[1] e = {9223372036854775807}, int64[1] s = {1}> { y = Slice (x, s, e) }",
        "(float[4, 3] x) => (int64[1] e, float[4, 3] y) <int64[1] e = {9223372036854775807}> { y = Relu (x) }",
        "(float[4, 3] x) => (int64[1] e, float[4, 3] y) { e = Constant <value = int64[1] {9223372036854775807}> () y = Relu (x) }",
    ],
    ids=["read", "initializer", "Constant"],
)
def test_a_constant_beyond_int32_that_is_a_result(engine: type[omb.Preset], graph: str) -> None:
    """OpenVINO limits it."""
    model = parsed(graph)
    if engine.name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="int32"):
            engine.prepare(model)
        return
    found = engine.prepare(model, fallback="full").run([np.ones((4, 3), np.float32)])
    assert found["e"] == np.iinfo(np.int64).max
