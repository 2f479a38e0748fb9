# SPDX-License-Identifier: Apache-2.0
"""Means of means behind a pool, which OpenVINO takes at once and gets wrong from the second run on."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

HEAD = '<ir_version: 8, opset_import: ["": 17]>'
MEANS = {
    "of a batch": "u = GlobalAveragePool (v) y = ReduceMean <axes = [0]> (u)",
    "dropped": "u = ReduceMean <axes = [-2, -1], keepdims = 0> (v) s = ReduceMean <axes = [0], keepdims = 0> (u) y = Unsqueeze (s, axes)",
    "batch first": "u = ReduceMean <axes = [0]> (v) y = GlobalAveragePool (u)",
    "one by one": "t = ReduceMean <axes = [3]> (v) u = ReduceMean <axes = [2]> (t) y = ReduceMean <axes = [0]> (u)",
    "over an Identity": "u = GlobalAveragePool (v) t = Identity (u) y = ReduceMean <axes = [0]> (t)",
}


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("sizes", ["2, 3, 8, 8", "n, 3, 8, 8", "n, c, h, w"])
def test_means_of_means(preset: type[omb.Preset], name: str, sizes: str) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[{sizes}] x) => (float[1, c, 1, 1] y) <int64[3] axes = {{0, 2, 3}}> {{
            v = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) {MEANS[name]} }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    right = x.reshape(2, 3, 4, 2, 4, 2).max((3, 5)).mean((0, 2, 3), keepdims=True)
    prepared = preset.prepare(model, fallback="full")
    for _ in range(3):
        np.testing.assert_allclose(prepared.run([x])[0], right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mean", ["ReduceMean <axes = [0, 2, 3]>", "MeanVarianceNormalization"])
def test_a_mean_of_an_output_of_sizes_that_are_not_declared(preset: type[omb.Preset], mean: str) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[n, 3, 8, 8] x) => (float[a, b, c, d] v, float[e, f, g, h] y) {{
            v = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) y = {mean} (v) }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    pooled = x.reshape(2, 3, 4, 2, 4, 2).max((3, 5))
    right = pooled.mean((0, 2, 3), keepdims=True)
    if "Variance" in mean:
        right = (pooled - right) / pooled.std((0, 2, 3), keepdims=True)
    prepared = preset.prepare(model, fallback="full")
    for _ in range(3):
        np.testing.assert_allclose(prepared.run([x])[1], right, rtol=1e-4, atol=1e-4)
