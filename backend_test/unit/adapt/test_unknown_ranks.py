# SPDX-License-Identifier: Apache-2.0
"""Nodes that read a tensor of unknown rank, which OpenVINO cannot, on its execution provider."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

import onnx_multi_backend as omb


def _model(opset: int, nodes: str, outputs: str) -> ModelProto:
    """A model beside nodes that the provider takes, and one that it does not: of a model that it has whole it takes nothing then."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[1] x, float[2, 3] f) => (float[A] w, {outputs})'
        f" {{ a = Sin(f) b = Tanh(a) c = Cos(b) d = Exp(c) w = Unique(d) {nodes} }}"
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_they_are_left_to_the_cpu_provider(openvino_ep: type[omb.Preset], opset: int) -> None:
    model = _model(opset, "y = Neg(x) s = Abs(y) z = Sqrt(s)", "float y, float z")
    for value in model.graph.output[1:]:
        value.type.tensor_type.ClearField("shape")
    with pytest.warns(omb.FallbackWarning, match="Neg"):
        prepared = openvino_ep.prepare(model)
    assert "left_to_cpu" in {change.pass_name for change in prepared.adaptations}
    assert "OpenVINOExecutionProvider" in {node.provider for node in prepared.placement()}
    for shape in ((4,), (1, 3, 2), ()):
        x, f = np.full(shape, -4, np.float32), np.ones((2, 3), np.float32)
        w, y, z = prepared.run([x, f])
        np.testing.assert_allclose(w, np.unique(np.exp(np.cos(np.tanh(np.sin(f))))), rtol=1e-5)
        assert y.shape == z.shape == shape
        assert np.all(y == 4) and np.all(z == 2)


def test_what_a_known_rank_comes_of_is_declared(openvino_ep: type[omb.Preset]) -> None:
    """Nodes behind may run on the provider: their rank is known."""
    model = _model(13, "r = Reshape(x, s) t = Sin(r) u = Tanh(t) v = Exp(u) y = Cos(v)", "float[N] y")
    model.graph.initializer.add(name="s", data_type=7, dims=[1], int64_data=[-1])
    with pytest.warns(omb.FallbackWarning, match="Reshape"):
        prepared = openvino_ep.prepare(model)
    for shape in ((4,), (1, 3, 2)):
        x = np.ones(shape, np.float32)
        _, y = prepared.run([x, np.ones((2, 3), np.float32)])
        np.testing.assert_allclose(y, np.cos(np.exp(np.tanh(np.sin(x.ravel())))), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_loop_beside_them_is_right(openvino_ep: type[omb.Preset]) -> None:
    """The provider took its body, and then the loop."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 8]> g (float v, float[1] x) => (float w, float[a, b, c] y) <int64 n = {3}, bool go = {1}> {
        w = Loop (n, go, v) <body = s (int64 i, bool more, float t) => (bool again, float u) {
            again = Identity (more) k = Log (t) u = Identity (k) }>
        y = ReduceMax <axes = [0, 1, 2], keepdims = 1> (x) }"""
    )
    model.graph.input[1].type.tensor_type.ClearField("shape")
    prepared = openvino_ep.prepare(model)
    for size in (2, 3):
        x = np.arange(size * 4, dtype=np.float32).reshape(size, 2, 2)
        w, y = prepared.run([np.array(12, np.float32), x])
        np.testing.assert_allclose(w, np.log(np.log(np.log(12))), rtol=1e-5)
        np.testing.assert_array_equal(y, [[[size * 4 - 1]]])
