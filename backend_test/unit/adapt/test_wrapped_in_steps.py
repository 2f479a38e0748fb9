# SPDX-License-Identifier: Apache-2.0
"""Unsigned numbers that wrap around below 0 before a loop, in a step of it or in the step before: right, or refused."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from onnx_multi_backend import OpenvinoBackend, OrtCpuBackend
from onnx_multi_backend.adapt.intervals.ranges import ranges
from onnx_multi_backend.errors import UnsupportedModelError

_FIRST = {"wraps": "BitwiseNot (x)", "kept": "Identity (x)"}
_STEP = {"kept": "Identity (s)", "wraps": "Sub (s, three)", "reads": "Div (s, three)"}
_LAST = {"kept": "Identity (state)", "reads": "Max (state, three)"}
_LOOP = """state = Loop (times, , v) <body = step (int64 i, bool go, uint32[2] s) => (bool again, uint32[2] t) {
   again = Identity (go)
   t = STEP
}>"""
_SCAN = """state, all = Scan <num_scan_inputs = 1, body = step (uint32[2] s, uint32[2] row) => (uint32[2] t, uint32[2] seen) {
   t = STEP
   seen = Identity (row)
}> (v, rows)"""


def _model(steps: str, first: str, step: str, last: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]>
        steps (uint32[2] x) => (uint32[2] y)
        <uint32[2] three = {{3, 3}}, int64 times = {{2}}, uint32[2, 2] rows = {{1, 2, 3, 4}}> {{
           v = {_FIRST[first]}
           {steps.replace("STEP", _STEP[step])}
           y = {_LAST[last]}
        }}"""
    )


@pytest.mark.parametrize("steps", [_LOOP, _SCAN], ids=["Loop", "Scan"])
@pytest.mark.parametrize("first", _FIRST)
@pytest.mark.parametrize("step", _STEP)
@pytest.mark.parametrize("last", _LAST)
def test_numbers_that_wrap_around_are_followed_through_steps(steps: str, first: str, step: str, last: str) -> None:
    model = _model(steps, first, step, last)
    if "wraps" in (first, step) and "reads" in (step, last):
        with pytest.raises(UnsupportedModelError, match="wrapped around below 0"):
            OpenvinoBackend.prepare(model)
        return
    x = np.array([5, 2], np.uint32)
    result = OrtCpuBackend.prepare(model).run([x])[0]
    np.testing.assert_array_equal(OpenvinoBackend.prepare(model).run([x])[0], result)


def test_loops_in_loops_are_walked_through_once() -> None:
    body, depth = "t0 = Identity (s0)", 16
    for level in range(depth):
        inside = body
        body = f"""t{level + 1} = Loop (times, , s{level + 1}) <body = step{level} (int64 i{level}, bool go{level}, uint32[2] s{level})
            => (bool again{level}, uint32[2] t{level}) {{ again{level} = Identity (go{level}) {inside} }}>"""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> steps (uint32[2] s{depth}) => (uint32[2] t{depth}) <int64 times = {{1}}> {{ {body} }}"""
    )
    seen = []
    ranges(model.graph, visit=lambda node, operands, made: seen.append(node.op_type))
    assert seen.count("Loop") == depth
