# SPDX-License-Identifier: Apache-2.0
"""Loops whose body reads the condition or the step, and that may make no step."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

CONDITIONS = {
    "constant": "co = Constant <value = bool {1}> ()",
    "passed on": "co = Identity (ci)",
    "computed": "co = And (ci, ci)",
    "of the step": "co = Less (i, n)",
}
STATES = {
    "the condition": "q = Cast <to = 1> (ci)",
    "the step": "q = Cast <to = 1> (i)",
    "neither": "q = Constant <value_float = 1.0> ()",
    "a branch of the condition": "q = If (ci) <then_branch = t () => (float t1) { t1 = Constant <value_float = 1.0> () }, "
    "else_branch = e () => (float e1) { e1 = Constant <value_float = 0.0> () }>",
}


def looped(condition: str, state: str, first: str = "c") -> ModelProto:
    """A Loop among other nodes."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 16]> g (float[2] x, int64 n, bool c) => (float[2] y) {{
            a = Exp (x)
            b = Loop (n, {first}, a) <body = body (int64 i, bool ci, float[2] s) => (bool co, float[2] so) {{
                {CONDITIONS[condition]} {STATES[state]} so = Add (s, q)
            }}>
            y = Relu (b)
        }}"""
    )


def expected(x: np.ndarray, n: int, c: bool, state: str) -> np.ndarray:
    """Source: Loop's documentation."""
    steps = n if c else 0
    return np.exp(x) + (sum(range(steps)) if state == "the step" else steps)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_step_that_is_made_counts(preset: type[omb.Preset], condition: str, state: str) -> None:
    """OpenVINO refused some of them; inside ONNX Runtime's provider (1.24) a loop of no steps gave the results of the run before."""
    model = looped(condition, state)
    prepared = preset.prepare(model)
    x = np.array([0.5, -1.0], np.float32)
    for n, c in ((3, True), (0, True), (2, True), (4, False), (1, True)):
        (y,) = prepared.run([x, np.array(n), np.array(c)])
        np.testing.assert_allclose(y, expected(x, n, c, state), rtol=1e-5)


@pytest.mark.parametrize("condition", ["constant", "computed"])
def test_a_loop_without_a_first_condition_may_read_it(openvino: type[omb.Preset], condition: str) -> None:
    prepared = openvino.prepare(looped(condition, "the condition", first=""))
    x = np.zeros(2, np.float32)
    for n in (3, 0, 1):
        (y,) = prepared.run({"x": x, "n": np.array(n), "c": np.array(True)})
        np.testing.assert_allclose(y, expected(x, n, True, "the condition"), rtol=1e-5)
