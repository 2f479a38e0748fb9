# SPDX-License-Identifier: Apache-2.0
"""An LSTM whose forget gate is what the input gate leaves, on OpenVINO as on ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models

HIDDEN, SIZE = 3, 4


def coupled(given: str, run_time: str = "", **attributes: Any) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """The layer with the optional inputs in `given`; those in `run_time` are inputs of the model, and come back."""
    rng, count = np.random.default_rng(3), 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = {
        "W": (4 * HIDDEN, SIZE),
        "R": (4 * HIDDEN, HIDDEN),
        "B": (8 * HIDDEN,),
        "H": (2, HIDDEN),
        "C": (2, HIDDEN),
    }
    values = {name: rng.normal(size=(count, *shapes[name])).astype(np.float32) for name in given}
    names = [name if name in ("X", *given) else "" for name in ("X", "W", "R", "B", "L", "H", "C", "P")]
    node = models.node("LSTM", names, ["Y", "Yh", "Yc"], hidden_size=HIDDEN, input_forget=1, **attributes)
    inputs = [models.tensor("X", ["s", 2, SIZE])]
    inputs += [models.tensor(name, values[name].shape) for name in run_time]
    outputs = [models.tensor(name, None) for name in ("Y", "Yh", "Yc")]
    known = {name: value for name, value in values.items() if name not in run_time}
    model = models.model([node], inputs, outputs, initializers=known, opsets={"": 14})
    return model, {name: values[name] for name in run_time}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("given", "run_time"), [("WR", ""), ("WRBC", ""), ("WRBH", ""), ("WRBC", "WRBC")])
def test_the_forget_gate_is_what_the_input_gate_leaves(
    direction: str, given: str, run_time: str, openvino: type[omb.Preset]
) -> None:
    model, fixed = coupled(given, run_time, direction=direction)
    ours, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    assert "coupled_gates" in {a.pass_name for a in ours.adaptations}
    for steps in (4, 1):
        feeds = {"X": np.random.default_rng(steps).normal(size=(steps, 2, SIZE)).astype(np.float32), **fixed}
        for found, wanted in zip(ours.run(feeds), right.run(feeds), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "attributes",
    [{"activations": ["Tanh", "Tanh", "Tanh"]}, {"activations": ["HardSigmoid", "Tanh", "Tanh"]}],
)
def test_other_gates_are_refused(attributes: dict[str, Any], openvino: type[omb.Preset]) -> None:
    model, _ = coupled("WR", **attributes)
    with pytest.raises(omb.UnsupportedModelError, match="input_forget=1 is ignored"):
        openvino.prepare(model)
