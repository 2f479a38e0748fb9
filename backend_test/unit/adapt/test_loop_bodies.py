# SPDX-License-Identifier: Apache-2.0
"""Loops beside nodes that OpenVINO's provider takes and one that it does not: it took their bodies, and they read other memory."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

BODIES = {
    "one node": ("so = Add (st, st)", lambda x: x + x),
    "several": (
        "q = Sin (st) r = Exp (q) t = Round (r) so = Add (t, q)",
        lambda x: np.round(np.exp(np.sin(x))) + np.sin(x),
    ),
}


@pytest.mark.parametrize("steps", ["known", "at run time"])
@pytest.mark.parametrize("body", BODIES)
def test_the_loop_reads_its_own_state(preset: type[omb.Preset], body: str, steps: str) -> None:
    nodes, step = BODIES[body]
    count = "known" if steps == "known" else "n"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] f, int64 n) => (float[2, 3] u, float[a] w, int64 m)
        <int64 known = {{3}}, bool go = {{1}}> {{
            a1 = Sin (f) b1 = Tanh (a1) c1 = Cos (b1) d1 = Exp (c1) dr = Round (d1) w = Unique (dr) m = Identity (n)
            u = Loop ({count}, go, f) <body = b (int64 i, bool ci, float[2, 3] st) => (bool co, float[2, 3] so) {{
                co = Identity (ci) {nodes} }}> }}"""
    )
    prepared = preset.prepare(model)
    for seed in (0, 1, 0):
        x = np.random.default_rng(seed).uniform(0.6, 0.9, (2, 3)).astype(np.float32)
        expected = x
        for _ in range(3):
            expected = step(expected)
        found = prepared.run([x, np.array(3)])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4)
