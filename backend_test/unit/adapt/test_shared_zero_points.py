# SPDX-License-Identifier: Apache-2.0
"""Sums of quantized values whose zero point other nodes read too: OpenVINO multiplied it for them as well."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

AXES = {"2, 3": (2, 3), "1": (1,), "3": (3,)}


@pytest.mark.parametrize("sizes", ["2, 3, 4, 4", "n, 3, h, w"])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("zero", ["z", "other"])
def test_sums(preset: type[omb.Preset], sizes: str, axes: str, zero: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[a, b, c, e] y, float[{sizes}] again)
        <float s = {{0.0625}}, float t = {{1}}, uint8 z = {{128}}, uint8 other = {{128}}, int64[{len(AXES[axes])}] axes = {{{axes}}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) v = ReduceSum (d, axes)
        p = QuantizeLinear (v, t, {zero}) y = DequantizeLinear (p, t, {zero})
        r = QuantizeLinear (x, t, {zero}) again = DequantizeLinear (r, t, {zero}) }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)
    prepared = preset.prepare(model, fallback="full")
    summed = (np.round(x * 16) / 16).sum(AXES[axes], keepdims=True)
    for _ in range(2):
        y, again = prepared.run([x])
        np.testing.assert_allclose(y, np.round(summed), atol=1)
        np.testing.assert_array_equal(again, np.round(x))
