# SPDX-License-Identifier: Apache-2.0
"""Of equal values the first one counts, however many there are: OpenVINO sorts 16 and more otherwise."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.parametrize(("opset", "axis"), [(11, 0), (11, 1), (13, -1), (13, 0)])
@pytest.mark.parametrize("sizes", ["2, 40", "a, b"])
def test_hardmax_marks_the_first_of_the_greatest(preset: type[omb.Preset], sizes: str, opset: int, axis: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[{sizes}] x) => (float[p, q] y) {{
        y = Hardmax <axis = {axis}> (x) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    numbers = np.random.default_rng(0)
    for _ in range(5):
        x = numbers.integers(0, 3, (2, 40)).astype(np.float32)
        rows = x.reshape(1, 80) if opset < 13 and axis == 0 else x if axis else x.T
        right = np.zeros_like(rows)
        right[np.arange(len(rows)), rows.argmax(1)] = 1
        np.testing.assert_array_equal(prepared.run(x)[0], right.reshape(x.shape) if len(rows) < 3 else right.T)
