# SPDX-License-Identifier: Apache-2.0
"""What a loop computes and no result needs: of a loop without steps, it ended OpenVINO's process."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.unneeded import without_unneeded

#: The float16 scale of the BatchNormalization has the model rewritten, with the Loop in it.
MODEL = """<ir_version: 8, opset_import: ["": 16]> g (float[2, 3, 3] x, float16[3] s, float16[3] b, float[3] m) => (float[2, 3, 3] n, float[2, 3, 3] y, float[STEPS, 2, 3, 3] rows)
    <float[3] v = {3.5, 2, 3}, int64 steps = {STEPS}, bool go = {1}> { n = BatchNormalization (x, s, b, m, v)
    y, rows = Loop (steps, go, x) <body = g2 (int64 i, bool c, float[2, 3, 3] state) => (bool d, float[2, 3, 3] next, float[2, 3, 3] row) {
        d = Identity (c) UNNEEDED next = Identity (x) row = Identity (state) }> }"""
UNNEEDED = {
    "SplitToSequence": "parts = SplitToSequence (m) a = Abs (b)",
    "RoiAlign": """rois = Constant <value = float[1, 4] {0, 0, 1, 1}> () which = Constant <value = int64[1] {0}> ()
        image = Constant <value = float[1, 1, 2, 2] {1, 2, 3, 4}> () r = RoiAlign (image, rois, which) a = Abs (b)""",
}


@pytest.mark.parametrize("unneeded", UNNEEDED)
@pytest.mark.parametrize("steps", [0, 2])
def test_the_process_lives(unneeded: str, steps: int, engine: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(MODEL.replace("STEPS", str(steps)).replace("UNNEEDED", UNNEEDED[unneeded]))
    generator = np.random.default_rng(4)
    x = generator.normal(size=(2, 3, 3)).astype(np.float32)
    s, b = (generator.normal(size=3).astype(np.float16) for _ in range(2))
    m = generator.normal(size=3).astype(np.float32)
    with engine.prepare(model, isolate=True) as rep:
        n, y, rows = rep.run([x, s, b, m])
    wide_s, wide_b = (v.astype(np.float32)[:, None] for v in (s, b))
    scaled = (x - m[:, None]) / np.sqrt(np.float32([3.5, 2, 3])[:, None] + 1e-5) * wide_s + wide_b
    np.testing.assert_allclose(n, scaled, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(rows, np.broadcast_to(x, (steps, 2, 3, 3)))


#: A state of another rank than what a step makes of it is what Paddle writes for a variable that only the loop has.
STATES = """<ir_version: 8, opset_import: ["": 16]> g (float[2, 3] x, int64 n) => (float[2, 3] y, int64 count) <bool go = {1}, int64 zero = {0}, int64 one = {1}, float none = {0}> {
    y, other, count, more = Loop (n, go, x, none, zero, none) <body = body
    (int64 i, bool c, float[2, 3] a, float o, int64 k, float m) => (bool d, float[2, 3] b, float[2, 3] p, int64 l, float[3, 2] q)
    { d = Identity (c) b = Add (a, a) p = Neg (b) l = Add (k, one) q = Transpose (p) }> }"""


@pytest.mark.parametrize("steps", [0, 3])
def test_states_that_no_result_needs(steps: int, engine: type[omb.Preset]) -> None:
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    y, count = engine.prepare(onnx.parser.parse_model(STATES)).run([x, np.int64(steps)])
    np.testing.assert_array_equal(y, x * 2**steps)
    assert count == steps


def test_states_that_a_needed_one_reads_are_kept() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 16]> g (float x, int64 n) => (float y) <bool go = {1}> { y, a, b, c = Loop (n, go, x, x, x, x) <body = body
        (int64 i, bool e, float y0, float a0, float b0, float c0) => (bool e1, float y1, float a1, float b1, float c1)
        { e1 = Identity (e) y1 = Add (y0, a0) a1 = Neg (b0) b1 = Abs (b0) c1 = Add (c0, a0) }> }"""
    )
    lighter, changes = without_unneeded(model)
    (loop,) = lighter.graph.node
    assert list(loop.output) == ["y", "a", "b"]
    assert [v.name for v in loop.attribute[0].g.input] == ["i", "e", "y0", "a0", "b0"]
    assert [str(change.node) for change in changes] == ["the state 'c' of Loop ''", "Add 'c1'"]


@pytest.mark.parametrize("steps", [0, 2])
def test_rows_that_nothing_reads(steps: int, preset: type[omb.Preset]) -> None:
    """OpenVINO left the state out with them, and with it what the result is where no step is made."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 17]> g (float[2] a, float[2] b, int64 n) => (float[2] r) {
        k = Constant <value = bool {1}> ()
        r, y = Loop <body = body (int64 i, bool c, float[2] p) => (bool d, float[2] t, float[2] u)
        { d = Identity (c) t = Neg (b) u = Neg (p) }> (n, k, a) }"""
    )
    a, b = np.float32([1, 2]), np.float32([10, 20])
    found = preset.prepare(model, fallback="full").run([a, b, np.array(steps)])[0]
    np.testing.assert_array_equal(found, -b if steps else a)
