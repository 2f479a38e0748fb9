# SPDX-License-Identifier: Apache-2.0
"""A TensorScatter that is written out refuses what does not fit: OpenVINO's ScatterElements writes beyond the cache."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_an_update_of_another_batch(preset: type[omb.Preset], mode: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 11, opset_import: ["": 24]> g (float[b, h, 3] u, float[k] z) => (float[x, y, w] o, float[k] n)
        <float[1, 3, 3] c = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}> {{ o = TensorScatter <axis = -2, mode = "{mode}"> (c, u) n = Neg (z) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    z, expected = np.ones(2, np.float32), np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3)
    expected[:, 0] = 0
    for batch in (1, 3, 64, 1):
        update = np.zeros((batch, 1, 3), np.float32)
        if batch > 1:
            with pytest.raises(omb.RunError):
                prepared.run([update, z])
        else:
            np.testing.assert_array_equal(prepared.run([update, z])[0], expected)


def test_an_update_whose_sizes_change_places(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 11, opset_import: ["": 24]> g (float[a, b, c, d] k, float[e, f, g, h] u, float[n] z) => (float[p, q, r, s] o, float[n] m) {
        o = TensorScatter (k, u) m = Neg (z) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    k, z = np.zeros((2, 4, 3, 4), np.float32), np.ones(1, np.float32)
    assert prepared.run([k, np.ones((2, 4, 1, 4), np.float32), z])[0].sum() == 32
    with pytest.raises(omb.RunError):
        prepared.run([k, np.ones((4, 2, 1, 4), np.float32), z])


def test_places_beyond_the_cache(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 11, opset_import: ["": 24]> g (float[b, s, 4] c, float[b, h, 4] u, int64[b] w) => (float[x, y, z] o) {
        o = TensorScatter (c, u, w) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    for start in (0, 2, 3, 100000, -5, -1000000, 1):
        given = [np.zeros((1, 4, 4), np.float32), np.ones((1, 2, 4), np.float32), np.array([start])]
        if not 0 <= start <= 2:
            with pytest.raises(omb.RunError):
                prepared.run(given)
        else:
            rows = prepared.run(given)[0][0, :, 0]
            np.testing.assert_array_equal(rows, [float(start <= row < start + 2) for row in range(4)])
