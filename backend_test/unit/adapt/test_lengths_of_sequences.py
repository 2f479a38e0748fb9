# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers whose batch only a run tells, with a length for each of its sequences."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.rules.recurrent_lengths import recurrent_lengths
from onnx_multi_backend.adapt.site import Site

ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}


def layer(operator: str, direction: str, named: bool) -> onnx.ModelProto:
    """Two features, two units."""
    gates, directions = {"LSTM": 4, "GRU": 3}[operator], 2 if direction == "bidirectional" else 1
    outputs = ["y", "h", "c"][: 3 if operator == "LSTM" else 2]
    chosen = {"activations": ACTIVATIONS[operator] * directions} if named else {}
    node = helper.make_node(
        operator, ["x", "w", "r", "", "lens"], outputs, hidden_size=2, direction=direction, **chosen
    )
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((directions, gates * 2, 2), np.float32), name) for name in "wr"
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", 2]),
        helper.make_tensor_value_info("lens", TensorProto.INT32, ["batch"]),
    ]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], "g", inputs, made, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize("operator", ACTIVATIONS)
@pytest.mark.parametrize(
    ("direction", "named", "rewritten"),
    [
        ("forward", False, True),
        ("forward", True, True),
        ("bidirectional", False, True),
        ("bidirectional", True, False),  # OpenVINO writes it as a loop, which is right
    ],
)
def test_each_sequence_ends_at_its_length(
    openvino: type[omb.Preset], operator: str, direction: str, named: bool, rewritten: bool
) -> None:
    model = layer(operator, direction, named)
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    assert bool(prepared.adaptations) is rewritten
    rng = np.random.default_rng(0)
    for steps, lengths in ((3, [3, 1]), (4, [2, 4, 1, 3]), (3, [1]), (5, [0, 5, 2]), (2, [0])):
        x = rng.standard_normal((steps, len(lengths), 2), np.float32)
        feeds = {"x": x, "lens": np.array(lengths, np.int32)}
        for ours, theirs in zip(prepared.run(feeds), right.run(feeds), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("reset_first", [0, 1])
def test_gru_goes_from_its_initial_state_whatever_lies_behind_the_end(
    openvino: type[omb.Preset], direction: str, reset_first: int
) -> None:
    model = layer("GRU", direction, False)
    node, directions = model.graph.node[0], 2 if direction == "bidirectional" else 1
    node.input.append("h0")
    node.attribute.append(helper.make_attribute("linear_before_reset", reset_first))
    model.graph.input.append(helper.make_tensor_value_info("h0", TensorProto.FLOAT, [directions, "batch", 2]))
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    rng = np.random.default_rng(0)
    for steps, lengths in ((6, [0, 6, 3]), (40, [2, 40, 1, 0]), (1, [1])):
        x = rng.standard_normal((steps, len(lengths), 2), np.float32)
        for i, length in enumerate(lengths):
            x[length:, i] = [1e30, -1e30]
        h0 = rng.standard_normal((directions, len(lengths), 2), np.float32)
        feeds = {"x": x, "lens": np.array(lengths, np.int32), "h0": h0}
        for ours, theirs in zip(prepared.run(feeds), right.run(feeds), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_both_directions_of_a_gru_stay_one_layer() -> None:
    """Each layer and each of its weights costs OpenVINO time where it compiles the model."""
    node = layer("GRU", "bidirectional", False)
    (body,) = recurrent_lengths(Site(onnx.shape_inference.infer_shapes(node)))
    made = [n.op_type for n in body.graph.node if n.op_type != "Constant"]
    assert made.count("GRU") == 1
    assert len(made) <= 20


@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
def test_what_closes_a_gate_is_finite_in_float16(operator: str) -> None:
    """An engine may compute in float16: beside the zeros of all other steps an infinity would make NaN."""
    site = Site(onnx.shape_inference.infer_shapes(layer(operator, "forward", operator == "LSTM")))
    (body,) = recurrent_lengths(site)
    constants = [numpy_helper.to_array(n.attribute[0].t) for n in body.graph.node if n.op_type == "Constant"]
    floats = [constant for constant in constants if constant.dtype == np.float32]
    assert max(abs(constant).max() for constant in floats) > 1e4
    assert all(np.isfinite(constant.astype(np.float16)).all() for constant in floats)
