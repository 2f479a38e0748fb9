# SPDX-License-Identifier: Apache-2.0
"""A DFT of numbers of which only a run tells whether they are complex, along an axis that only a run tells."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", ["", "n"])
@pytest.mark.parametrize("axis", [None, 0, -3])
def test_numbers_that_may_be_complex(preset: type[omb.Preset], inverse: int, length: str, axis: int | None) -> None:
    given = "(float[a, b, c] x, int64 n, int64 k)" if axis is None else "(float[a, b, c] x, int64 n)"
    known = "" if axis is None else f"<int64 k = {{{axis}}}>"
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 20]> g {given} => (float[d, e, f] y, int64 m) {known} {{
            y = DFT <inverse = {inverse}> (x, {length}, k) m = Identity (n) }}"""
    )
    prepared = preset.prepare(model)
    for parts in (1, 2, 1):
        x = np.random.default_rng(parts).normal(size=(4, 3, parts)).astype(np.float32)
        numbers = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
        for k in (0, 1, -2, -3) if axis is None else (axis,):
            feeds = [x, np.array(5), *([np.array(k)] if axis is None else [])]
            place = k if k >= 0 else k + 1  # NumPy does not count the axis of the parts
            right = (np.fft.ifft if inverse else np.fft.fft)(numbers, 5 if length else None, place)
            got = prepared.run(feeds)[0]
            np.testing.assert_allclose(got, np.stack([right.real, right.imag], -1), rtol=1e-4, atol=1e-5)


def test_what_reads_a_transform_of_known_sizes(preset: type[omb.Preset]) -> None:
    """The sizes were lost where a run tells the axis: OpenVINO then refused one scale for each row, or the whole model."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[4, 3, 1] x, int64 k) => (int8[4, 3, 2] y)
            <float[3] scales = {1, 0.5, 0.25}, int8[3] zeros = {1, 0, 0}> {
            z = DFT <inverse = 1> (x, , k) y = QuantizeLinear <axis = 1> (z, scales, zeros) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    x = np.random.default_rng(0).normal(size=(4, 3, 1)).astype(np.float32) * 9
    for axis in (0, 1, -3):
        parts = np.fft.ifft(x[..., 0], axis=axis if axis >= 0 else 0)
        right = np.rint(np.stack([parts.real, parts.imag], -1) / np.float32([[1], [0.5], [0.25]])) + [[1], [0], [0]]
        np.testing.assert_array_equal(prepared.run([x, np.array(axis)])[0], right)
