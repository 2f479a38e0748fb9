# SPDX-License-Identifier: Apache-2.0
"""Global maxima that are quantized: OpenVINO made whole numbers of them before it did that."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

ZEROS = {"uint8": 128, "int8": 0}
SHAPES = [(2, 1, 1, 1), (3, 8, 4, 4), (1, 3, 2, 5), (2, 4, 3, 2, 3), (2, 4, 6)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize(
    "before", ["v = GlobalMaxPool (x)", "r = Abs (x) v = GlobalMaxPool (r)", "r = GlobalMaxPool (x) v = Relu (r)"]
)
def test_global_maxima(preset: type[omb.Preset], before: str, kind: str, is_open: bool, shape: tuple[int, ...]) -> None:
    sizes = ", ".join("ABCDE"[i] if is_open else str(size) for i, size in enumerate(shape))
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 19]> g (float[{sizes}] x) => (float[{", ".join("PQRST"[: len(shape)])}] y)
        <float s = {{0.015625}}, {kind} z = {{{ZEROS[kind]}}}> {{ {before} q = QuantizeLinear (v, s, z) y = DequantizeLinear (q, s, z) }}"""
    )
    rep = preset.prepare(model, fallback="full")
    for seed in (0, 1):
        x = np.random.default_rng(seed).uniform(-1.5, 1.5, shape).astype(np.float32)
        largest = (np.abs(x) if "Abs" in before else x).max(tuple(range(2, x.ndim)), keepdims=True)
        steps = np.round((np.maximum(largest, 0) if "Relu" in before else largest) * 64)
        right = np.clip(steps, -128, 127).astype(np.float32) / 64
        np.testing.assert_allclose(rep.run(x)[0], right, atol=1e-6)
