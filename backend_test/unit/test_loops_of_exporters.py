# SPDX-License-Identifier: Apache-2.0
"""Loops as PyTorch writes them, with a constant for a condition, whose bodies read the outer graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.host.applies import applies

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64
TRUE = numpy_helper.from_array(np.array(True))

CODE = """
import sys
import onnxruntime as ort
ort.InferenceSession(sys.argv[1], providers=[("OpenVINOExecutionProvider", {"device_type": "CPU"}), "CPUExecutionProvider"])
"""


def rows_added(condition: NodeProto, *, shape: list[int] | None) -> ModelProto:
    """``h`` and the first rows of ``x``, added up one by one."""
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
            helper.make_node("Add", ["h_in", "row"], ["h_out"]),
            condition,
        ],
        "body",
        [models.tensor("i", [], INT64), models.tensor("c_in", [], BOOL), models.tensor("h_in", shape)],
        [models.tensor("c_out", [], BOOL), models.tensor("h_out", shape)],
    )
    return models.model(
        [models.node("Loop", ["n", "true", "h"], ["y"], body=body)],
        [models.tensor("x", ["rows", 3]), models.tensor("n", [], INT64), models.tensor("h", [3])],
        [models.tensor("y", shape)],
        initializers={"true": np.array(True)},
        opsets={"": 17},
    )


FORMS = {
    "a Constant": helper.make_node("Constant", [], ["c_out"], value=TRUE),
    "the first condition": helper.make_node("Identity", ["true"], ["c_out"]),
    "the first condition, cast": helper.make_node("Cast", ["true"], ["c_out"], to=BOOL),
}
FEEDS = {"x": np.float32([[1, 2, 3], [4, 5, 6]]), "n": np.int64(2), "h": np.zeros(3, np.float32)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_it_runs(preset: type[omb.Preset], form: str, tmp_path: Path) -> None:
    made = rows_added(FORMS[form], shape=[3])
    prepared = preset.prepare(made, fallback="full")
    np.testing.assert_array_equal(prepared.run(FEEDS)[0], [5, 7, 9])
    np.testing.assert_array_equal(prepared.run({**FEEDS, "n": np.int64(1)})[0], [1, 2, 3])
    if preset.name.startswith("OrtOpenvino") and applies({"onnxruntime": "<1.31"}):
        assert [a.pass_name for a in prepared.adaptations if a.node == "Loop"] == ["left_to_cpu"]
        assert {"Loop"} <= {n.op_type for n in prepared.placement() if n.provider == "CPUExecutionProvider"}
        onnx.save(made, tmp_path / "model.onnx")
        done = subprocess.run([sys.executable, "-c", CODE, tmp_path / "model.onnx"], capture_output=True, check=False)
        assert done.returncode < 0, "the provider has been mended: the entry can go"


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_others_are_left_to_the_provider(openvino_ep: type[omb.Preset]) -> None:
    own = helper.make_node("Identity", ["c_in"], ["c_out"])
    for made in (rows_added(FORMS["a Constant"], shape=None), rows_added(own, shape=None)):
        np.testing.assert_array_equal(openvino_ep.prepare(made, fallback="full").run(FEEDS)[0], [5, 7, 9])
