# SPDX-License-Identifier: Apache-2.0
"""What a Loop without a step collects has the sizes that its body declares."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import onnx_multi_backend as omb


@pytest.mark.parametrize("declared", ["2,?", "?,3", "2,3", "?,?"])
def test_declared_sizes_are_there_before_any_step(declared: str, openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int64[p,q] x, int64[{declared}] s, int64 n) => (int64[a,b] last, int64[c,d,e] rows)
            <bool go = {{1}}> {{
            last, rows = Loop (n, go, s) <body = body (int64 i, bool c, int64[{declared}] before)
                => (bool again, int64[{declared}] after, int64[{declared}] row) {{
                again = Identity (c) after = Identity (x) row = Identity (before) }}>
        }}"""
    )
    rep = openvino.prepare(model)
    x = np.arange(6).reshape(2, 3)
    sizes = tuple(0 if size == "?" else int(size) for size in declared.split(","))
    for steps in (0, 3, 0, 1):
        last, rows = rep.run([x, x + 1, np.array(steps)])
        np.testing.assert_array_equal(last, x if steps else x + 1)
        if steps:
            np.testing.assert_array_equal(rows, [x + 1, *[x] * (steps - 1)])
        else:
            assert rows.shape == (0, *sizes)


@pytest.mark.parametrize("opset", [13, 14, 18])
def test_rows_beside_a_split_in_each_opset(opset: int, openvino: type[omb.Preset]) -> None:
    """Of opset 13, as tf2onnx writes Keras' GRU, it was refused: the rows needed a newer one, to which a Split into equal parts is not converted."""
    parts = ", num_outputs = 2" if opset >= 18 else ""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (int64 n, float[b, 4] x) => (float[b, 4] y, float[t, b, 4] r) <bool go = {{1}}> {{
            y, r = Loop (n, go, x) <body = body (int64 i, bool c, float[q, 4] s) => (bool again, float[q, 4] after, float[q, 4] row) {{
            again = Identity (c) u, v = Split <axis = 1{parts}> (s) after = Concat <axis = 1> (v, u) row = Neg (after) }}> }}"""
    )
    prepared = openvino.prepare(model)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    turned = x[:, [2, 3, 0, 1]]
    for steps in (3, 0, 2):
        y, r = prepared.run([np.array(steps), x])
        np.testing.assert_array_equal(y, turned if steps % 2 else x)
        assert r.shape[0] == steps
        np.testing.assert_array_equal(r, np.reshape([-turned, -x, -turned][:steps], r.shape))
