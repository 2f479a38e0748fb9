# SPDX-License-Identifier: Apache-2.0
"""Zeros around the input of MaxPool count where a Pad puts them: ONNX Runtime's optimizer before 1.32 takes them for MaxPool's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import onnx_multi_backend as omb
from backend_test.unit import models


@pytest.mark.parametrize("pads", [0, 1])
@pytest.mark.parametrize("value", [None, 0.0, -5.0])
def test_zeros_count(preset: type[omb.Preset], value: float | None, pads: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    constants = {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    constants |= {} if value is None else {"v": np.array(value, np.float32)}
    nodes = [
        helper.make_node("Pad", ["x", *constants], ["padded"]),
        helper.make_node("MaxPool", ["padded"], ["y"], kernel_shape=[3, 3], pads=[pads] * 4),
    ]
    given, out = models.tensor("x", [1, 2, "h", 5]), models.tensor("y", [1, 2, "p", "q"])
    model = models.model(nodes, [given], [out], initializers=constants, opsets={"": 18})
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    right = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    prepared = preset.prepare(model)
    for size in (5, 4, 5):
        x = np.random.default_rng(size).normal(-3, 1, (1, 2, size, 5)).astype(np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], right.run(None, {"x": x})[0])
