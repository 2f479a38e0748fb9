# SPDX-License-Identifier: Apache-2.0
"""An LSTM with peepholes on OpenVINO gives what ONNX Runtime's kernel gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models

HIDDEN, SIZE = 3, 4


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", ["WRBLHCP", "WRP", "WRBP", "WRLHP"])
@pytest.mark.parametrize("run_time", ["", "LP", "WRBLHCP"])
def test_peepholes(openvino: type[omb.Preset], direction: str, given: str, run_time: str) -> None:
    pytest.importorskip("onnxruntime")
    rng, count = np.random.default_rng(3), 2 if direction == "bidirectional" else 1
    shapes = {
        "W": (4 * HIDDEN, SIZE),
        "R": (4 * HIDDEN, HIDDEN),
        "B": (8 * HIDDEN,),
        "H": (2, HIDDEN),
        "C": (2, HIDDEN),
    }
    shapes["P"] = (3 * HIDDEN,)
    values = {name: rng.normal(size=(count, *shapes[name])).astype(np.float32) for name in given if name != "L"}
    values |= {"L": np.int32([3, 1])} if "L" in given else {}
    attributes: dict[str, Any] = {"hidden_size": HIDDEN, "direction": direction}
    if direction == "reverse":
        attributes["activations"] = ["Sigmoid", "Relu", "Softsign"]
    names = ["X", "W", "R", "B", "L", "H", "C", "P"]
    node = models.node("LSTM", [n if n in ("X", *given) else "" for n in names], ["Y", "Yh", "Yc"], **attributes)
    inputs = [models.tensor("X", ["s", "b", SIZE])]
    inputs += [
        models.tensor(name, values[name].shape, TensorProto.INT32 if name == "L" else TensorProto.FLOAT)
        for name in given
        if name in run_time
    ]
    known = {name: value for name, value in values.items() if name not in run_time}
    outputs = [models.tensor(name, None) for name in ("Y", "Yh", "Yc")]
    model = models.model([node], inputs, outputs, initializers=known, opsets={"": 14})
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    assert any(a.pass_name == "lstm_steps" for a in prepared.adaptations)
    for steps in (5, 3, 4):
        if "L" in run_time and "L" in given:
            values["L"] = np.int32([steps, steps - 3])
        feeds = {"X": rng.normal(size=(steps, 2, SIZE)).astype(np.float32)}
        feeds |= {name: values[name] for name in given if name in run_time}
        for found, wanted in zip(prepared.run(feeds), right.run(feeds), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_in_float16_with_one_output(openvino: type[omb.Preset]) -> None:
    rng = np.random.default_rng(4)
    shapes = {"W": (1, 4, 2), "R": (1, 4, 1), "B": (1, 8), "P": (1, 3)}
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    node = helper.make_node("LSTM", ["X", "W", "R", "B", "", "", "", "P"], ["", "Yh"], hidden_size=1)

    def model(kind: int) -> Any:
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("X", kind, [3, "b", 2])],
            [helper.make_tensor_value_info("Yh", kind, None)],
            [numpy_helper.from_array(value.astype(dtype), name) for name, value in values.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    x = rng.normal(size=(3, 2, 2)).astype(np.float16)
    found = openvino.prepare(model(TensorProto.FLOAT16)).run([x])[0]
    wanted = omb.OrtCpuBackend.prepare(model(TensorProto.FLOAT)).run([x.astype(np.float32)])[0]
    np.testing.assert_allclose(found, wanted, rtol=5e-3, atol=1e-3)
