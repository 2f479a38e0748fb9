# SPDX-License-Identifier: Apache-2.0
"""Channels in another order before a convolution: OpenVINO orders the weights instead, by the inverse of what it has to."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

ORDERS = ([1, 2, 0], [2, 0, 1], [3, 1, 0, 2], [1, 2, 3, 4, 5, 0], [-1, 0, 1])


def _gathered(order: list[int], *, opset: int = 18, relu: bool = False) -> ModelProto:
    nodes = [helper.make_node("Gather", ["x", "order"], ["g"], axis=1)]
    nodes += [helper.make_node("Relu", ["g"], ["r"])] if relu else []
    nodes.append(helper.make_node("Conv", ["r" if relu else "g", "w"], ["y"], name="conv"))
    return _model(nodes, len(order), {"order": np.array(order)}, opset)


def _model(nodes: list[helper.NodeProto], channels: int, constants: dict[str, np.ndarray], opset: int) -> ModelProto:  # type: ignore[name-defined]
    weights = np.random.default_rng(0).normal(size=(4, channels, 1, 1)).astype(np.float32)
    return models.model(
        nodes,
        [models.tensor("x", ["n", channels, "h", "w"])],
        [models.tensor("y", ["n", 4, "h", "w"])],
        initializers={**constants, "w": weights},
        opsets={"": opset},
    )


def _split(order: list[int], *, opset: int = 18) -> ModelProto:
    parts = [f"p{i}" for i in range(3)]
    made = {"num_outputs": 3} if opset >= 18 else {}
    nodes = [
        helper.make_node("Split", ["x"], parts, axis=1, **made),
        helper.make_node("Concat", [parts[i] for i in order], ["c"], axis=1),
        helper.make_node("Conv", ["c", "w"], ["y"]),
    ]
    return _model(nodes, 3, {}, opset)


FORMS = {
    **{f"Gather {order}": _gathered(order) for order in ORDERS},
    "Gather before a Relu": _gathered([1, 2, 0], relu=True),
    "Gather of opset 11": _gathered([1, 2, 0], opset=11),
    "Split and Concat": _split([1, 2, 0]),
    "Split and Concat of opset 11": _split([2, 0, 1], opset=11),
}


@pytest.mark.parametrize("form", FORMS)
def test_channels_come_in_the_order_that_is_asked_for(preset: type[omb.Preset], form: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = FORMS[form]
    prepared = preset.prepare(model)
    right = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    channels = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    for size in (5, 3, 5):
        x = np.random.default_rng(size).normal(size=(2, channels, size, size)).astype(np.float32)
        np.testing.assert_allclose(prepared.run([x])[0], right.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_engine_alone_still_takes_the_inverse_order(openvino: type[omb.Preset], form: str) -> None:
    """Where this fails the engine has been mended: let it have the form."""
    runtime = pytest.importorskip("onnxruntime")
    model = FORMS[form]
    channels = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    x = np.random.default_rng(1).normal(size=(1, channels, 4, 4)).astype(np.float32)
    right = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert not np.allclose(openvino.prepare(model, adapt=False).run([x])[0], right[0], atol=0.1)


@pytest.mark.parametrize("model", [_gathered([2, 1, 0]), _split([2, 1, 0])], ids=["Gather", "Split"])
def test_a_reversal_stays_as_it_is(openvino: type[omb.Preset], model: ModelProto) -> None:
    assert openvino.prepare(model).adaptations == ()
