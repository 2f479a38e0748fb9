# SPDX-License-Identifier: Apache-2.0
"""Bidirectional recurrent layers with other activations for the reverse direction, to which OpenVINO gives those of the forward one."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models

STEPS, BATCH, FEATURES, HIDDEN = 4, 2, 3, 2
X = np.random.default_rng(0).standard_normal((STEPS, BATCH, FEATURES)).astype(np.float32)
#: The gates of a layer, and the activations of both directions.
LAYERS = {
    "LSTM": (4, ["Sigmoid", "Tanh", "Tanh"], ["Sigmoid", "Relu", "Sigmoid"]),
    "GRU": (3, ["Sigmoid", "Tanh"], ["Sigmoid", "Relu"]),
    "RNN": (1, ["Tanh"], ["Sigmoid"]),
}


def _tensors(op_type: str) -> list[np.ndarray]:
    gates, rng = LAYERS[op_type][0], np.random.default_rng(1)
    states = [(2, BATCH, HIDDEN)] * (2 if op_type == "LSTM" else 1)
    shapes = [(2, gates * HIDDEN, FEATURES), (2, gates * HIDDEN, HIDDEN), (2, 2 * gates * HIDDEN), *states]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _layer(op_type: str, tensors: list[np.ndarray], sizes: list[Any], **attributes: Any) -> onnx.ModelProto:
    names = ["w", "r", "b", "h", "c"][: len(tensors)]
    inputs = ["x", *names[:3], "", *names[3:]]
    outputs = ["y", "yh", "yc"][: 3 if op_type == "LSTM" else 2]
    made = models.model(
        [models.node(op_type, inputs, outputs, hidden_size=HIDDEN, **attributes)],
        [models.tensor("x", sizes)],
        [models.tensor(name, None) for name in outputs],
        opsets={"": 14},
    )
    made.graph.initializer.extend(numpy_helper.from_array(t, name) for t, name in zip(tensors, names, strict=True))
    return made


@pytest.mark.parametrize("sizes", [[STEPS, BATCH, FEATURES], ["s", "b", FEATURES]], ids=["fixed", "open"])
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("op_type", LAYERS)
def test_each_direction_has_its_own(
    preset: type[omb.Preset], op_type: str, clip: float | None, sizes: list[Any]
) -> None:
    _, forward, reverse = LAYERS[op_type]
    tensors = _tensors(op_type)[
        : 3 if sizes[0] == "s" else None
    ]  # OpenVINO 2026.4 refuses states in two parts for an open batch
    given = {} if clip is None else {"clip": clip}
    both = _layer(op_type, tensors, sizes, direction="bidirectional", activations=[*forward, *reverse], **given)
    found = preset.prepare(both, fallback="full").run(X)
    parts = [
        preset.prepare(
            _layer(op_type, [t[i : i + 1] for t in tensors], sizes, direction=direction, activations=own, **given),
            fallback="full",
        ).run(X)
        for i, (direction, own) in enumerate((("forward", forward), ("reverse", reverse)))
    ]
    for result, one, other, axis in zip(found, *parts, (1, 0, 0), strict=False):
        np.testing.assert_allclose(result, np.concatenate([one, other], axis), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "activations", [[], ["Tanh", "Tanh"], ["Tanh", "Sigmoid"]], ids=["by default", "same", "other"]
)
def test_parameters_that_no_activation_has(preset: type[omb.Preset], activations: list[str]) -> None:
    given = {"activations": activations} if activations else {}
    tensors, sizes = _tensors("RNN"), [STEPS, BATCH, FEATURES]
    found, plain = (
        preset.prepare(
            _layer("RNN", tensors, sizes, direction="bidirectional", **given, **parameters), fallback="full"
        ).run(X)
        for parameters in ({"activation_alpha": [0.5, 2.0, 10.0], "activation_beta": [-1.0]}, {})
    )
    for result, expected in zip(found, plain, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_the_same_activations_stay_one_layer(openvino: type[omb.Preset]) -> None:
    both = _layer(
        "GRU", _tensors("GRU"), ["s", "b", FEATURES], direction="bidirectional", activations=["Sigmoid", "Tanh"] * 2
    )
    assert openvino.prepare(both).adaptations == ()


@pytest.mark.parametrize("sizes", [[STEPS, BATCH, FEATURES], ["s", "b", FEATURES]], ids=["fixed", "open"])
@pytest.mark.parametrize("op_type", LAYERS)
def test_two_layers_stay_two(preset: type[omb.Preset], op_type: str, sizes: list[Any]) -> None:
    """As above, each in a layer of its own; of the same values, OpenVINO makes one of both."""
    gates, forward, reverse = LAYERS[op_type]
    rng = np.random.default_rng(2)
    shapes = {"w": (1, gates * HIDDEN, FEATURES), "r": (1, gates * HIDDEN, HIDDEN), "b": (1, 2 * gates * HIDDEN)}
    tensors = {
        f"{name}_{d}": rng.standard_normal(s).astype(np.float32)
        for d in ("forward", "reverse")
        for name, s in shapes.items()
    }

    def net(*directions: str) -> onnx.ModelProto:
        nodes = [
            models.node(
                op_type,
                ["x", *(f"{name}_{d}" for name in shapes)],
                [f"y_{d}"],
                hidden_size=HIDDEN,
                direction=d,
                activations=forward if d == "forward" else reverse,
            )
            for d in directions
        ]
        used = {name: t for name, t in tensors.items() if name.rpartition("_")[2] in directions}
        outputs = [models.tensor(f"y_{d}", None) for d in directions]
        return models.model(nodes, [models.tensor("x", sizes)], outputs, initializers=used, opsets={"": 14})

    found = preset.prepare(net("forward", "reverse"), fallback="full").run(X)
    for result, direction in zip(found, ("forward", "reverse"), strict=True):
        alone = preset.prepare(net(direction), fallback="full").run(X)[0]
        np.testing.assert_allclose(result, alone, rtol=1e-4, atol=1e-5)
