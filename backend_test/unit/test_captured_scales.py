# SPDX-License-Identifier: Apache-2.0
"""What is moved behind a DequantizeLinear and read by a branch or a body: an optimizer of ONNX Runtime ended the process over it."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

MOVING = {
    "MaxPool": "MaxPool <kernel_shape = [1, 1]> (d)",
    "Reshape": "Reshape (d, sizes)",
    "Slice": "Slice (d, from, to)",
    "Squeeze": "Squeeze (d)",
    "Transpose, Unsqueeze": "Transpose (e)",
}
READING = {
    "If": """y = If (c) <then_branch = t () => (float u) { u = ReduceSum <keepdims = 0> (p) },
                        else_branch = e () => (float v) { v = ReduceMax <keepdims = 0> (p) }>""",
    "Loop": """y = Loop (steps, c, start) <body = b (int64 i, bool k, float s) => (bool l, float t) {
                        l = Identity (k) r = ReduceSum <keepdims = 0> (p) t = Add (s, r) }>""",
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("moving", MOVING)
@pytest.mark.parametrize("reading", READING)
@pytest.mark.parametrize("beside", [True, False])
def test_a_quantized_value_in_a_branch(preset: type[omb.Preset], moving: str, reading: str, beside: bool) -> None:
    """Read by a node of the main graph too, or by the branches alone."""
    before = "e = Unsqueeze (d, axis)" if "Unsqueeze" in moving else ""
    text = f"""(int8[2, 3, 4, 5] x, bool c) => (float y{", float z" if beside else ""})
        <float s = {{0.5}}, int8 o = {{3}}, int64[2] sizes = {{6, 20}}, int64[4] from = {{0, 0, 0, 0}}, int64[4] to = {{2, 3, 4, 5}}, int64[1] axis = {{1}},
         int64 steps = {{1}}, float start = {{0}}> {{
        d = DequantizeLinear (x, s, o) {before} p = {MOVING[moving]} {"n = Neg (p) z = ReduceSum <keepdims = 0> (n)" if beside else ""} {READING[reading]} }}"""
    prepared = preset.prepare(
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {text}'), fallback="full"
    )
    x = np.arange(120, dtype=np.int8).reshape(2, 3, 4, 5)
    right = (x.astype(np.float32) - 3) / 2
    for true in (True, False, True):
        got = prepared.run([x, np.bool_(true)])
        summed = right.sum() if true else (right.max() if reading == "If" else 0)
        np.testing.assert_allclose(got[0], summed, rtol=1e-5)
        if beside:
            np.testing.assert_allclose(got[1], -right.sum(), rtol=1e-5)
