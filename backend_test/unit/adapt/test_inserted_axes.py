# SPDX-License-Identifier: Apache-2.0
"""Reductions that keep their axes, behind what inserts an axis of one element after them: OpenVINO inserted it too early."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

REDUCTIONS = {
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceL1": lambda x, **axes: np.abs(x).sum(**axes),
    "ReduceL2": lambda x, **axes: np.sqrt(np.square(x).sum(**axes)),
}


def _check(preset: type[omb.Preset], opset: int, body: str, operator: str, sizes: str = "2, 3, 4, 5") -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[{sizes}] x) => (float[a, b, c, d, e] y)
        <int64[1] two = {{2}}, int64[1] back = {{-3}}, int64[1] zero = {{0}}, int64[5] t = {{0, 0, 1, 4, 5}}, float[5] k = {{1, 2, 3, 4, 5}}> {{ {body} }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    right = REDUCTIONS[operator](x[:, :, None], axis=0, keepdims=True)
    if "Mul" in body:
        right = right * np.arange(1, 6, dtype=np.float32)
    got = preset.prepare(model, fallback="full").run([x])[0]
    assert got.shape == right.shape
    np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("sizes", ["2, 3, 4, 5", "n, 3, 4, 5"])
def test_reductions(preset: type[omb.Preset], operator: str, sizes: str) -> None:
    _check(preset, 18, f"v = Unsqueeze (x, two) y = {operator} (v, zero)", operator, sizes)


@pytest.mark.parametrize(
    "body",
    [
        "v = Unsqueeze (x, back) y = ReduceSum (v, zero)",
        "v = Reshape (x, t) y = ReduceSum (v, zero)",
        "v = Reshape (x, t) u = Mul (v, k) y = ReduceSum (u, zero)",
        "v = Unsqueeze (x, two) u = Identity (v) y = ReduceSum <keepdims = 1> (u, zero)",
        "u = Transpose <perm = [1, 0, 2, 3]> (x) v = Unsqueeze (u, two) w = Transpose <perm = [1, 0, 2, 3, 4]> (v) y = ReduceSum (w, zero)",
    ],
)
def test_what_inserts_the_axis(preset: type[omb.Preset], body: str) -> None:
    _check(preset, 18, body, "ReduceSum")


def test_older_opsets(preset: type[omb.Preset]) -> None:
    _check(preset, 11, "v = Unsqueeze <axes = [2]> (x) y = ReduceMean <axes = [0]> (v)", "ReduceMean")


def test_no_axes_as_an_attribute_are_all(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 11]> g (float[2, 3, 4] x) => (float[a, b, c, d] y) {
        v = Unsqueeze <axes = [2]> (x) y = ReduceMax (v) }"""
    )
    model.graph.node[1].attribute.append(onnx.AttributeProto(name="axes", type=onnx.AttributeProto.INTS))
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run([x])[0], [[[[23]]]])


@pytest.mark.parametrize(
    "body", ["v = Unsqueeze (x, zero) y = ReduceSum (v, two)", "v = Unsqueeze (x, two) y = ReduceSum (v, back)"]
)
def test_others_are_not_touched(openvino: type[omb.Preset], body: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float[a, b, c, d] y)
        <int64[1] two = {{2}}, int64[1] zero = {{0}}, int64[1] back = {{-1}}> {{ {body} }}"""
    )
    assert "insertions_apart" not in {made.pass_name for made in openvino.prepare(model).adaptations}
