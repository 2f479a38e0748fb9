# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one channel whose results are a single column, on processors whose kernel puts them elsewhere and others."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

pytest.importorskip("onnxruntime")

GENERATOR = np.random.default_rng(5)
IMAGES = {
    "flat": ("b, 1, h, w", (2, 1, 8, 3), (17, 1, 2, 3), "strides = [1, 2]"),
    "fixed": ("2, 1, 40, 4", (2, 1, 40, 4), (16, 1, 3, 4), "strides = [1, 3]"),
    "padded": ("b, 1, h, w", (3, 1, 5, 2), (3, 1, 3, 2), "strides = [1, 2], pads = [1, 0, 0, 1], dilations = [2, 1]"),
    "same": ("b, 1, h, w", (3, 1, 6, 2), (3, 1, 3, 3), 'strides = [1, 2], auto_pad = "SAME_UPPER"'),
    "deep": ("b, 1, d, h, w", (1, 1, 3, 8, 5), (2, 1, 2, 4, 4), "strides = [1, 1, 2], pads = [0, 1, 0, 0, 0, 0]"),
}


def drawn(shape: tuple[int, ...]) -> str:
    return ", ".join(str(n) for n in GENERATOR.integers(0, 100, int(np.prod(shape))))


@pytest.mark.parametrize("image", IMAGES)
def test_a_single_column(openvino: type[omb.Preset], image: str) -> None:
    declared, shape, weights, how = IMAGES[image]
    sizes = ",".join(map(str, weights))
    made = ", ".join("abcde"[: len(shape)])
    model = parsed(
        f"(float[{declared}] x) => (float[{made}] y) <float[{sizes}] w = {{{drawn(weights)}}}> {{ y = Conv <{how}> (x, w) }}"
    )
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    for more in (0, 5, 0) if "w" in declared else (0, 0):
        x = GENERATOR.normal(size=(*shape[:-1], shape[-1] + more)).astype(np.float32)
        wanted = right.run(x)[0]
        assert more or wanted.shape[-1] == 1
        np.testing.assert_allclose(prepared.run(x)[0], wanted, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    ("node", "made"),
    [
        ("ConvInteger <strides = [1, 2]> (x, w)", "int32"),
        ("QLinearConv <strides = [1, 2]> (x, s, z, w, s, z, t, z)", "uint8"),
    ],
)
def test_a_single_column_of_integers(openvino: type[omb.Preset], node: str, made: str) -> None:
    model = parsed(
        f"""(uint8[b, 1, h, w0] x) => ({made}[p, q, r, t0] y) <
        uint8[17, 1, 1, 3] w = {{{drawn((17, 3))}}}, float s = {{0.05}}, float t = {{1}}, uint8 z = {{3}}> {{ y = {node} }}"""
    )
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    for columns in (3, 9, 3):
        x = GENERATOR.integers(0, 255, (2, 1, 8, columns)).astype(np.uint8)
        difference = prepared.run(x)[0].astype(np.int64) - right.run(x)[0].astype(np.int64)
        assert abs(difference).max() <= (made == "uint8")
