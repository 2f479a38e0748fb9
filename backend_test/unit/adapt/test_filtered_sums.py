# SPDX-License-Identifier: Apache-2.0
"""Sums with a depthwise convolution: OpenVINO lost the convolution of an image of one place, where sizes are open."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: What comes between the convolution f and the sum of k, and behind the sum s; with what that makes of numpy's arrays.
BETWEEN = {
    "nothing": ("k = Identity (f)", lambda f, c: f),
    "BatchNormalization": ("k = BatchNormalization (f, b, b, b, v)", lambda f, c: (f - c) / np.sqrt(1 + 1e-5) * c + c),
    "Mul": ("k = Mul (f, c)", lambda f, c: f * c),
}
BEHIND = {
    "Mul": ("y = Mul (s, c)", lambda s, c: s * c),
    "PRelu": ("y = PRelu (s, c)", lambda s, c: np.where(s < 0, s * c, s)),
    "Relu, Add": ("r = Relu (s) y = Add (r, c)", lambda s, c: np.maximum(s, 0) + c),
}


@pytest.mark.parametrize("sizes", ["n, 4, h, w", "n, 4, 1, 1", "1, 4, h, 1"])
@pytest.mark.parametrize("sum_", ["Add", "Sub"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("between", BETWEEN)
def test_of_one_place_and_of_more(preset: type[omb.Preset], between: str, behind: str, sum_: str, sizes: str) -> None:
    before, of_filtered = BETWEEN[between]
    after, of_sum = BEHIND[behind]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[p, q, r, s] y)
        <float[4, 1, 1, 1] w = {{2, -1, 3, 0.5}}, float[4, 1, 1] c = {{1, 2, -3, 4}}, float[4] b = {{1, 2, -3, 4}}, float[4] v = {{1, 1, 1, 1}}> {{
        f = Conv <group = 4> (x, w) g = Relu (x) {before} s = {sum_} (g, k) {after} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    w, c = (np.float32(v).reshape(4, 1, 1) for v in ([2, -1, 3, 0.5], [1, 2, -3, 4]))
    for shape in ((1, 4, 1, 1), (2, 4, 1, 1), (1, 4, 3, 5), (1, 4, 1, 1)):
        if (shape[0] > 1 and sizes.startswith("1")) or (shape[3] > 1 and sizes != "n, 4, h, w"):
            continue
        x = np.random.default_rng(len(behind)).normal(size=shape).astype(np.float32)
        filtered = of_filtered(x * w, c)
        s = np.maximum(x, 0) + (filtered if sum_ == "Add" else -filtered)
        np.testing.assert_allclose(prepared.run([x])[0], of_sum(s, c), rtol=1e-4, atol=1e-4)


def test_where_all_sizes_are_known_nothing_is_changed(openvino: type[omb.Preset]) -> None:
    for sizes in ("1, 2, 1, 1", "n, 2, 3, 3"):
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x, float[2, 1, 1, 1] w) => (float[p, q, r, s] y) {{
            f = Conv <group = 2> (x, w) g = Relu (x) s = Add (g, f) y = Relu (s) }}"""
        )
        assert not openvino.prepare(model).adaptations
