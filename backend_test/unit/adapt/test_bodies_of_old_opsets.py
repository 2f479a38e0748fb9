# SPDX-License-Identifier: Apache-2.0
"""OpenVINO ends its process at a Pad of opset 18 without pads: no body is shown in an opset that its nodes are not written for."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.same_operator import is_written_for

MODEL = """<ir_version: 10, opset_import: ["": 9]> g (float[3, n] x) => (float[m, k] y) {
    y = Scan <num_scan_inputs = 1, body = body (float[3] row) => (float[3] same) {
        unread = Pad <mode = "edge", pads = [2, 2, 0, 2]> (x)
        same = Identity (row)
    }> (x)
}"""


@pytest.mark.parametrize(("opset", "written"), [(9, True), (10, True), (11, False), (18, False)])
def test_a_node_is_written_for_some_opsets(opset: int, written: bool) -> None:
    pad = onnx.parser.parse_node('y = Pad <pads = [0, 1], mode = "edge"> (x)')
    assert is_written_for([pad], {"": opset}) is written


def test_what_onnx_does_not_know_may_have_any_form() -> None:
    nodes = [onnx.parser.parse_node("y = com.example.Pad <pads = [0, 1]> (x)"), onnx.parser.parse_node("y = Own (x)")]
    assert is_written_for(nodes, {"": 18, "com.example": 1})


def test_the_process_lives(openvino: type[omb.Preset]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2).repeat(2, axis=1)[:, :3]
    prepared = openvino.prepare(onnx.parser.parse_model(MODEL))
    np.testing.assert_array_equal(prepared.run([x])[0], x)
