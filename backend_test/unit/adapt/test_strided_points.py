# SPDX-License-Identifier: Apache-2.0
"""Convolutions with a kernel of 1, pads and strides: OpenVINO took the strides over to what is before them, and the pads stayed."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

X = np.random.default_rng(3).uniform(-1, 1, (2, 2, 5, 4)).astype(np.float32)


def right(x: np.ndarray, pads: list[int], strides: list[int]) -> np.ndarray:
    weights, bias = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([1, 0, -1])
    padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])[:, :, :: strides[0], :: strides[1]]
    return np.einsum("oc,nchw->nohw", weights, padded) + bias[:, None, None]


@pytest.mark.parametrize("kernel", ["", "kernel_shape = [1, 1], "])
@pytest.mark.parametrize(("pads", "strides"), [([1, 1, 1, 1], [2, 2]), ([0, 2, 1, 0], [3, 1]), ([0, 0, 0, 3], [1, 2])])
@pytest.mark.parametrize("shape", ["2, 2, 5, 4", "n, 2, h, w"])
@pytest.mark.parametrize("before", ["Relu (x)", "Sub (x, half)", "Identity (x)", "Conv (x, same)"])
def test_behind_another_node(
    preset: type[omb.Preset], before: str, shape: str, pads: list[int], strides: list[int], kernel: str
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{shape}] x) => (float[a, b, c, d] y)
        <float half = {{0.5}}, float[2, 2, 1, 1] same = {{1, 0, 0, 1}}, float[3, 2, 1, 1] w = {{1, 2, 3, 4, 5, 6}}, float[3] bias = {{1, 0, -1}}> {{
        d = {before} y = Conv <{kernel}pads = {pads}, strides = {strides}> (d, w, bias) }}"""
    )
    x = {"R": np.maximum(X, 0), "S": X - np.float32(0.5)}.get(before[0], X)
    found = preset.prepare(model, fallback="full").run([X])[0]
    np.testing.assert_allclose(found, right(x, pads, strides), rtol=1e-4, atol=1e-5)


def test_without_pads_or_strides_nothing_is_changed(openvino: type[omb.Preset]) -> None:
    for attributes in (
        "pads = [1, 1, 1, 1]",
        "strides = [2, 2]",
        "kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]",
    ):
        size = 3 if "kernel" in attributes else 1
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 13]> g (float[2, 2, 5, 4] x, float[3, 2, {size}, {size}] w) => (float[a, b, c, d] y) {{
            d = Relu (x) y = Conv <{attributes}> (d, w) }}"""
        )
        assert not openvino.prepare(model).adaptations
