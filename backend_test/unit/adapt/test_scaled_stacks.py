# SPDX-License-Identifier: Apache-2.0
"""Weights of more than two axes that are scaled where a product reads them: OpenVINO took the scales of one axis for those of another."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

SHAPES = [(1, 17, 17), (1, 17, 9), (2, 17, 17), (1, 1, 17, 17)]


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("along", ["rows", "columns", "all", "the stack"])
@pytest.mark.parametrize("read", [(17, 17), (2, 5, 17), "a, b, 17"], ids=str)
@pytest.mark.parametrize("written", ["DequantizeLinear", "Mul"])
def test_they_are_scaled_along_their_axis(
    preset: type[omb.Preset], shape: tuple[int, ...], along: str, read: tuple[int, ...] | str, written: str
) -> None:
    rng = np.random.default_rng(len(shape))
    axis = {"rows": -2, "columns": -1, "all": None, "the stack": 0}[along]
    count = 1 if axis is None else shape[axis]
    weights = rng.integers(-20, 21, shape).astype(np.int8)
    scale = rng.uniform(0.01, 0.15, count).astype(np.float32)
    sizes = [1] * len(shape)
    if axis is not None:
        sizes[axis] = count
    spread = scale.reshape(sizes)
    held = f"""int8[{", ".join(map(str, shape))}] w = {{{", ".join(map(str, weights.ravel()))}}}, """
    numbers = ", ".join(map(repr, scale.tolist()))
    if written == "Mul":
        held += f"""float[{", ".join(map(str, sizes))}] s = {{{numbers}}}"""
        made = "c = Cast <to = 1> (w) d = Mul (c, s)"
    elif axis is None:
        held += f"float s = {{{numbers}}}"
        made = "d = DequantizeLinear (w, s)"
    else:
        held += f"float[{count}] s = {{{numbers}}}"
        made = f"d = DequantizeLinear <axis = {axis}> (w, s)"
    declared = read if isinstance(read, str) else ", ".join(map(str, read))
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[{declared}] x) => (float y) <{held}> {{ {made} m = MatMul (x, d) y = Relu (m) }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    prepared = preset.prepare(model, fallback="full")
    x = rng.normal(size=(2, 5, 17) if isinstance(read, str) else read).astype(np.float32)
    right = np.maximum(x @ (weights * spread), 0)
    for _ in range(2):
        np.testing.assert_allclose(prepared.run([x])[0], right, rtol=1e-4, atol=1e-4)
