# SPDX-License-Identifier: Apache-2.0
"""Weights with several scales behind which an axis of one element moves: OpenVINO took the scales for those of another axis."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

GENERATOR = np.random.default_rng(5)


def made_of(shape: tuple[int, ...], axis: int, moving: str, to: tuple[int, ...]) -> onnx.ModelProto:
    """Another value is quantized: without one nothing is moved."""
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[4, 4] x) => (float d, float y) <float xs = {{0.05}}, uint8 xz = {{128}}> {{
        q = QuantizeLinear (x, xs, xz) d = DequantizeLinear (q, xs, xz) w = DequantizeLinear <axis = {axis}> (i, s) {moving} }}"""
    )
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    constants = {"i": GENERATOR.integers(-100, 100, shape).astype(np.int8), "to": np.int64(to)}
    constants["s"] = GENERATOR.uniform(0.01, 0.2, shape[axis]).astype(np.float32)
    read = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in constants.items() if n in read)
    return made


@pytest.mark.parametrize(
    ("shape", "axis", "moving", "to"),
    [
        ((1, 5, 5), 1, "y = Transpose <perm = [1, 2, 0]> (w)", ()),
        ((1, 5, 5), 1, "v = Identity (w) y = Reshape (v, to)", (5, 5, 1)),
        ((5, 5, 1), 1, "y = Reshape (w, to)", (1, 5, 5)),
        ((1, 5, 5, 1), 2, "t = Transpose <perm = [0, 3, 1, 2]> (w) y = Relu (t)", ()),
        ((1, 7, 1, 7), 1, "y = Transpose <perm = [1, 3, 2, 0]> (w)", ()),
    ],
)
def test_scales_stay_with_their_axis(
    preset: type[omb.Preset], shape: tuple[int, ...], axis: int, moving: str, to: tuple[int, ...]
) -> None:
    made = made_of(shape, axis, moving, to)
    x = GENERATOR.normal(size=(4, 4)).astype(np.float32)
    for got, right in zip(preset.prepare(made, fallback="full").run([x]), unoptimized(made, x), strict=True):
        assert got.shape == right.shape
        np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("moving", ["y = Transpose <perm = [0, 2, 1]> (w)", "y = Reshape (w, to)"])
def test_what_keeps_them_in_place_is_left_alone(openvino: type[omb.Preset], moving: str) -> None:
    made = made_of((1, 5, 5), 1, moving, (5, 5))
    assert "weights_apart" not in {change.pass_name for change in openvino.prepare(made).adaptations}
