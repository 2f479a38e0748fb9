# SPDX-License-Identifier: Apache-2.0
"""A sequence that several recurrent layers read, or a layer and a Transpose: OpenVINO turned it for one of them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def _model(sizes: str, nodes: str, outputs: str) -> onnx.ModelProto:
    model = parsed(f"(float[{sizes}, 5] x) => ({outputs}) {{ {nodes} }}")
    for seed, (operator, gates) in enumerate(_GATES.items()):
        numbers = np.random.default_rng(seed)
        for name, columns in (("w", 5), ("r", 4)):
            weights = numbers.normal(size=(1, gates * 4, columns)).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(weights, f"{name}{operator}"))
    return model


def _layer(operator: str, made: str, direction: str = "forward") -> str:
    return f'{made} = {operator} <hidden_size = 4, direction = "{direction}"> (x, w{operator}, r{operator})'


@pytest.mark.parametrize("sizes", ["3, 2", "s, b"])
@pytest.mark.parametrize(("first", "second"), [("LSTM", "LSTM"), ("GRU", "GRU"), ("RNN", "LSTM")])
def test_two_layers(preset: type[omb.Preset], sizes: str, first: str, second: str) -> None:
    """The second one went through other elements."""
    direction = "reverse" if first == second else "forward"
    one, other = _layer(first, "y"), f"{_layer(second, 'v', direction)} z = Neg (v)"
    outputs = ["float[a, b, c, d] y", "float[e, f, g, h] z"]
    x = floats(3, 2, 5)
    found = preset.prepare(_model(sizes, f"{one} {other}", ", ".join(outputs)), fallback="full").run([x])
    for nodes, output, value in zip((one, other), outputs, found, strict=True):
        alone = preset.prepare(_model(sizes, nodes, output), fallback="full").run([x])[0]
        np.testing.assert_allclose(value, alone, atol=1e-5, strict=True)


@pytest.mark.parametrize("sizes", ["3, 2", "s, b"])
@pytest.mark.parametrize("layers", [["LSTM"], ["LSTM", "GRU", "RNN"]])
def test_layers_and_a_transpose(preset: type[omb.Preset], sizes: str, layers: list[str]) -> None:
    """The Transpose of what a layer reads became a Reshape."""
    nodes = [_layer(operator, f"y{operator}") for operator in layers]
    outputs = [f"float[a{i}, b{i}, c{i}, d{i}] y{operator}" for i, operator in enumerate(layers)]
    model = _model(
        sizes, " ".join([*nodes, "z = Transpose <perm = [1, 0, 2]> (x)"]), ", ".join([*outputs, "float[e, f, 5] z"])
    )
    x = floats(3, 2, 5)
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run([x])[-1], x.transpose(1, 0, 2))


@pytest.mark.parametrize("between", ["Identity", "Relu"])
@pytest.mark.parametrize("sizes", ["3, 2", "s, b"])
def test_layers_of_equal_values(preset: type[omb.Preset], between: str, sizes: str) -> None:
    """OpenVINO makes one of equal nodes, and leaves Identities out, before it turns sequences."""
    layers = {operator: _layer(operator, f"v{operator}").replace("(x,", f"(x{operator},") for operator in _GATES}
    nodes = " ".join(
        f"x{operator} = {between} (x) {layers[operator]} y{operator} = Neg (v{operator})" for operator in _GATES
    )
    outputs = {operator: f"float[a{i}, b{i}, c{i}, d{i}] y{operator}" for i, operator in enumerate(_GATES)}
    x = floats(3, 2, 5)
    found = preset.prepare(_model(sizes, nodes, ", ".join(outputs.values())), fallback="full").run([x])
    for value, operator in zip(found, _GATES, strict=True):
        alone = f"x{operator} = {between} (x) {layers[operator]} y{operator} = Neg (v{operator})"
        right = preset.prepare(_model(sizes, alone, outputs[operator]), fallback="full").run([x])[0]
        np.testing.assert_allclose(value, right, atol=1e-5)
