# SPDX-License-Identifier: Apache-2.0
"""A Gemm with beta=0 does not read its C, whatever that holds."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

_X, _W = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[1, -2], [3, 4], [5, 0]])
_C = np.float32([np.nan, -np.inf])


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("opset", [7, 9, 11, 13, 22])
@pytest.mark.parametrize("known", [True, False])
def test_it_may_hold_anything(preset: type[omb.Preset], opset: int, known: bool) -> None:
    text = "(float[n, 3] x, float[3, 2] w, float[m] c) => (float[n, 2] z) { y = Gemm <beta = 0.0, alpha = 2.0> (x, w, c) z = Tanh (y) }"
    model = onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> g {text}')
    feeds = {"x": _X / 9, "w": _W / 9, "c": _C}
    if known:
        model.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop("c"), "c"))
        del model.graph.input[2]
    prepared = preset.prepare(model)
    for rows in (2, 1):
        got = prepared.run({**feeds, "x": _X[:rows] / 9})[0]
        np.testing.assert_allclose(got, np.tanh(2 * (_X[:rows] @ _W) / 81), rtol=1e-5)


@pytest.mark.parametrize(("beta", "c"), [(0.0, "{1, 2}"), (1.0, "{1, 2}")])
def test_a_finite_one_is_left_as_it_is(openvino: type[omb.Preset], beta: float, c: str) -> None:
    text = (
        f"(float[2, 3] x, float[3, 2] w) => (float[2, 2] y) <float[2] c = {c}> {{ y = Gemm <beta = {beta}> (x, w, c) }}"
    )
    prepared = openvino.prepare(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> g {text}'))
    assert not prepared.adaptations
    np.testing.assert_allclose(prepared.run([_X, _W])[0], _X @ _W + beta * np.float32([1, 2]), rtol=1e-6)
