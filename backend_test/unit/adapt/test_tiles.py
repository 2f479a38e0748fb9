# SPDX-License-Identifier: Apache-2.0
"""Tile by known repeats of several axes, where sizes are open: OpenVINO repeated other elements beside an axis of size 1."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: What makes t of x, of which an axis has size 1.
BEFORE = {
    "Split": "a, t = Split <axis = 1> (x, parts)",
    "Slice": "a = Relu (x) t = Slice (a, three, four, axis)",
    "Gather": "t = Gather <axis = 1> (x, three)",
}


@pytest.mark.parametrize(
    "repeats", [[1, 2, 2, 1], [1, 2, 1, 3], [2, 17, 1, 1], [3, 2, 2, 2], [1, 2, 0, 1], [1, 2, 1, 1]]
)
@pytest.mark.parametrize("shape", ["n, 4, 3, 2", "n, c, h, w", "2, 4, 3, w"])
@pytest.mark.parametrize("before", BEFORE)
def test_each_element_is_where_it_belongs(
    engine: type[omb.Preset], before: str, shape: str, repeats: list[int]
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{shape}] x) => (float[p, q, r, s] y)
        <int64[2] parts = {{3, 1}}, int64[1] three = {{3}}, int64[1] four = {{4}}, int64[1] axis = {{1}},
        int64[4] repeats = {{{", ".join(map(str, repeats))}}}> {{ {BEFORE[before]} y = Tile (t, repeats) }}"""
    )
    prepared = engine.prepare(model, fallback="full")
    for batch in (2, 1):
        if shape.startswith("2") and batch == 1:
            continue
        x = np.random.default_rng(batch).uniform(1, 2, (batch, 4, 3, 2)).astype(np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], np.tile(x[:, 3:], repeats))
