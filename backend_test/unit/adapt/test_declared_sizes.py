# SPDX-License-Identifier: Apache-2.0
"""An If whose sizes only the model declares: OpenVINO's provider knows what follows from the inputs alone."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

RESHAPED = """(float[3, 2, 3] x, int64[4] shape, bool c) => (float[3, 2, 1, 3] r, float[3, 2, 1, 3] y) { r = Reshape (x, shape)
    y = If (c) <then_branch = t () => (float[3, 2, 1, 3] p) { p = Neg (r) }, else_branch = e () => (float[3, 2, 1, 3] q) { q = Identity (r) }> }"""
FIXED = """(float[3, 2, 3] x, bool c) => (float[3, 2, 3] r, float[3, 2, 3] y) { r = Abs (x)
    y = If (c) <then_branch = t () => (float[3, 2, 3] p) { p = Neg (r) }, else_branch = e () => (float[3, 2, 3] q) { q = Identity (r) }> }"""


def parsed(graph: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {graph}')


@pytest.mark.parametrize("graph", [RESHAPED, FIXED])
def test_a_branch_that_changes_is_followed(graph: str, preset: type[omb.Preset]) -> None:
    rep = preset.prepare(parsed(graph))
    for run, condition in enumerate((True, False, True, False, False)):
        x = np.arange(18, dtype=np.float32).reshape(3, 2, 3) + run
        shape = [np.int64([3, 2, 1, 3])] if graph is RESHAPED else []
        r, y = rep.run([x, *shape, np.array(condition)])
        np.testing.assert_array_equal(r.reshape(x.shape), x)
        np.testing.assert_array_equal(y, -r if condition else r)


def test_sizes_that_follow_from_the_inputs_stay(built_in_ep: type[omb.Preset]) -> None:
    assert not built_in_ep.prepare(parsed(FIXED)).adaptations
    changes = built_in_ep.prepare(parsed(RESHAPED)).adaptations
    assert [change.pass_name for change in changes] == ["confirmed_sizes", "left_to_cpu"]
    assert "'p', 'q', 'r', 'y'" in changes[0].change
