# SPDX-License-Identifier: Apache-2.0
"""A constant along an image axis stays in the image: OpenVINO multiplied it into the window of a convolution behind it."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

RNG = np.random.default_rng(4)
BETWEEN = {
    "Pad": "p = Pad (m, pads)",
    "Neg and Pad": "n = Neg (m) p = Pad (n, pads)",
    "a Slice of all": "p = Slice (m, zero, all, two)",
    "a Reshape to the same": "p = Reshape (m, same)",
    "an Expand to the same": "p = Expand (m, one)",
    "a Tile of one": "p = Tile (m, once)",
}


def numbers(count: int) -> str:
    return ", ".join(f"{v:.3f}" for v in RNG.normal(size=count))


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("sizes", ["3, 3, 3, 3", "n, 3, 3, 3", "n, 3, h, w"])
@pytest.mark.parametrize("operator", ["Mul", "Div"])
def test_behind_what_changes_nothing(preset: type[omb.Preset], between: str, sizes: str, operator: str) -> None:
    model = parsed(
        f"""(float[{sizes}] x) => (float[] y) <float[3] c = {{2, -3, 0.5}}, int64[8] pads = {{0, 0, 0, 0, 0, 0, 0, 1}}, int64[1] zero = {{0}},
        int64[1] all = {{3}}, int64[1] two = {{2}}, int64[4] same = {{0, 0, 3, 3}}, int64[1] one = {{1}}, int64[4] once = {{1, 1, 1, 1}},
        float[3, 3, 2, 3] weights = {{{numbers(54)}}}> {{ m = {operator} (x, c) {BETWEEN[between]} y = Conv <pads = [0, 1, 1, 1]> (p, weights) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = RNG.normal(size=(3, 3, 3, 3)).astype(np.float32)
    (right,) = unoptimized(model, x)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(x)[0], right, rtol=1e-4, atol=1e-4)
