# SPDX-License-Identifier: Apache-2.0
"""A ReduceLogSumExp of constants with infinities is what ONNX asks for, as it is of inputs."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb

ROWS = np.array([[1, np.inf], [2, -np.inf], [-np.inf, -np.inf], [np.inf, np.inf], [np.inf, -np.inf]])
RIGHT = [np.inf, 2, -np.inf, np.inf, np.inf]


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("opset", [8, 13, 18])
@pytest.mark.parametrize("kind", ["float", "float16"])
@pytest.mark.parametrize("known", [True, False])
def test_infinities(preset: type[omb.Preset], opset: int, kind: str, known: bool) -> None:
    node = "ReduceLogSumExp <axes = [1]> (x)" if opset < 18 else "ReduceLogSumExp (x, a)"
    text = f"({kind}[n, 2] x, {kind}[1] p) => ({kind}[n, 1] y) <int64[1] a = {{1}}> {{ z = {node} y = Add (z, p) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')
    x = ROWS.astype("float32" if kind == "float" else kind)
    feeds = {"x": x, "p": np.zeros(1, x.dtype)}
    if opset < 18:
        del model.graph.initializer[:]
    if known:
        model.graph.initializer.append(numpy_helper.from_array(feeds.pop("x"), "x"))
        del model.graph.input[0]
    prepared = preset.prepare(model)
    for _ in range(2):
        np.testing.assert_allclose(prepared.run(feeds)[0][:, 0], RIGHT, rtol=1e-3)


def test_finite_ones_are_left_as_they_are(openvino: type[omb.Preset]) -> None:
    text = "(float p) => (float[2, 1] y) <float[2, 2] x = {1, 2, 3, 4}, int64[1] a = {1}> { z = ReduceLogSumExp (x, a) y = Add (z, p) }"
    prepared = openvino.prepare(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}'))
    assert not [a for a in prepared.adaptations if a.pass_name == "reduce_functions"]
