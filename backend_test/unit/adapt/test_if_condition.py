# SPDX-License-Identifier: Apache-2.0
"""An If whose condition has axes, as PyTorch writes one for a comparison of a matrix: OpenVINO itself refuses it."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

MODEL = """<ir_version: 8, opset_import: ["": OPSET]> g (float[SIZES] c, float[2] x) => (float[2] y) <float half = {0.5}> {
    b = Greater (c, half) y = If (b) <then_branch = t () => (float[2] a) { a = Neg (x) }, else_branch = e () => (float[2] z) { z = Add (x, x) }> }"""


@pytest.mark.parametrize("opset", [9, 18])
@pytest.mark.parametrize("sizes", ["1, 1", "n, m", "1, 1, 1"])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_its_axes_do_not_count(sizes: str, opset: int, preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(MODEL.replace("SIZES", sizes).replace("OPSET", str(opset)))
    prepared = preset.prepare(model, fallback="full")
    x = np.float32([1, 2])
    for value, expected in ((1, [-1, -2]), (0, [2, 4]), (1, [-1, -2])):
        condition = np.full([1] * (1 + sizes.count(",")), value, np.float32)
        np.testing.assert_array_equal(prepared.run([condition, x])[0], expected)
