# SPDX-License-Identifier: Apache-2.0
"""Loops as PyTorch writes them, with a constant for a condition, whose bodies read the outer graph; and as Paddle does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
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


#: As Paddle's exporter writes a while: the names of the body are those of the graph around it, a state of another rank that nothing needs,
#: weights that are passed on, a condition that is counted in floats, and a shape of a branch that is not what the branch makes.
PADDLE = """<ir_version: 8, opset_import: ["": 14]> g (float[rows, 3] x, float most) => (float[r, 3] sum, float[q, 3] last, int64 n)
    <float[3, 3] w = {1, 0, 0, 0, 2, 0, 0, 0, 1}, int64 zero = {0}, float one = {1}, float[1] nothing = {0}, bool[1] off = {0}, float[1, 3] none = {7, 8, 9}, int64[1] first = {0}, int64[1] second = {1}, int64[0] empty = {}> {
    far = Cast <to = 7> (most) start = Less (zero, far)
    sum, last, unused, n, w_end, done_end = Loop ("", start, x, none, nothing, zero, w, off) <body = body
    (int64 i, bool start, float[rows, 3] x, float[q, 3] last, float[a] nothing, int64 n, float[3, 3] w, bool[1] done)
    => (bool more, float[rows, 3] next, float[q, 3] row, float[b, c] made, int64 n_next, float[3, 3] w, bool[1] done_next) {
        next = MatMul (x, w) row = Slice (next, first, second) made = Transpose (row)
        number = Cast <to = 1> (n) more_of_it = Add (number, one) n_next = Cast <to = 7> (more_of_it)
        size = Cast <to = 1> (far) less = Cast <to = 7> (size) is_less = Less (n_next, less)
        always = Constant <value = bool {1}> ()
        over = If (always) <then_branch = yes () => (bool a_done) { a_done = Cast <to = 9> (done) },
                            else_branch = no () => (bool b_done) { b_done = Constant <value = bool[1] {1}> () }>
        done_next = Reshape (over, second) not_done = Not (over) both = And (is_less, not_done) more = Reshape (both, empty) }> }"""


@pytest.mark.parametrize("steps", [3, 1, 0])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_loops_of_paddle(preset: type[omb.Preset], steps: int) -> None:
    """OpenVINO itself refuses the names; the state that no step reads is the one before the loop where there is no step."""
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    made, last, count = preset.prepare(onnx.parser.parse_model(PADDLE), fallback="full").run([x, np.float32(steps)])
    expected = x * np.float32([1, 2**steps, 1])
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(last, expected[:1] if steps else [[7, 8, 9]])
    assert count == steps
