# SPDX-License-Identifier: Apache-2.0
"""Negative indices beside those of chosen boxes, and lengths of sequences around an LSTM, which OpenVINO lost."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

BOXES = np.float32([[[0, 0, 1, 1], [0, 0, 1, 1.1], [3, 3, 4, 4], [6, 6, 7, 7]]])
SCORES = np.float32([[[0.9, 0.8, 0.7, 0.6]]])  # the first, the third and the last one are chosen


@pytest.mark.parametrize(
    ("nodes", "rows"),
    [
        ("j = Concat <axis = 0> (i, last) y = Gather (r, j)", [0, 2, 3, 3]),
        ("j = Gather (table, i) y = Gather (r, j)", [3, 1, 0]),
        ("y = Gather (r, i)", [0, 2, 3]),
    ],
)
@pytest.mark.parametrize("count", ["4", "n"])
def test_negative_indices_beside_chosen_ones(preset: type[omb.Preset], nodes: str, rows: list[int], count: str) -> None:
    """They were unsigned, and the rows 0."""
    model = parsed(
        f"""(float[1, {count}, 4] b, float[1, 1, {count}] s) => (float[m, 4] y) <int64[1] k = {{4}}, float[1] t = {{0.5}}, float[1] z = {{0}},
        int64 two = {{2}}, int64[1] last = {{-1}}, int64[1] zero = {{0}}, int64[4] table = {{-1, -2, -3, -4}}> {{
        n = NonMaxSuppression (b, s, k, t, z) i = Gather <axis = 1> (n, two) r = Squeeze (b, zero) {nodes} }}"""
    )
    found = preset.prepare(model, fallback="full").run([BOXES, SCORES])[0]
    np.testing.assert_array_equal(found, BOXES[0][rows])


def test_reversed_sequences_of_their_lengths(preset: type[omb.Preset]) -> None:
    """All were taken for as long as the longest one."""
    layer = "Y = LSTM <hidden_size = 4> (r, w, u) t = Transpose <perm = [2, 1, 0, 3]> (Y) y = Squeeze (t, one)"
    turned = layer.replace("y = Squeeze", "q = Squeeze")
    reversed_twice = parsed(
        f"""(float[s, b, 4] x, int64[b] n) => (float[b, s, 4] y) <int64[1] one = {{1}}> {{
        r = ReverseSequence <time_axis = 0, batch_axis = 1> (x, n) {turned} y = ReverseSequence <time_axis = 1, batch_axis = 0> (q, n) }}"""
    )
    alone = parsed(f"(float[s, b, 4] r) => (float[b, s, 4] y) <int64[1] one = {{1}}> {{ {layer} }}")
    for model in (reversed_twice, alone):
        model.graph.initializer.extend(
            numpy_helper.from_array(floats(1, 16, 4) * factor, name)
            for name, factor in (("w", 1), ("u", np.float32(0.5)))
        )
    x, lengths = floats(3, 2, 4), np.array([2, 3])
    turn = [[1, 0, 2], [2, 1, 0]]
    reverse = np.stack([x[places, i] for i, places in enumerate(turn)], axis=1)
    there = preset.prepare(alone, fallback="full").run([reverse])[0]
    right = np.stack([there[i, places] for i, places in enumerate(turn)])
    np.testing.assert_allclose(preset.prepare(reversed_twice, fallback="full").run([x, lengths])[0], right, atol=1e-5)
