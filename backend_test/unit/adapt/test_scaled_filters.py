# SPDX-License-Identifier: Apache-2.0
"""Quantized convolutions of filters that are scaled in a run end the process in ONNX Runtime's OpenVINO provider (2025.4) by itself."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import onnx_multi_backend as omb

IMAGE = np.random.default_rng(0).integers(0, 256, (1, 4, 5, 5)).astype(np.uint8)
FLOATS = np.random.default_rng(1).normal(size=(6, 4, 3, 3)).astype(np.float32)
BYTES = np.random.default_rng(2).integers(-128, 128, (6, 4, 3, 3)).astype(np.int8)
FORMS = {
    "Mul": "u = Mul (f, s) r = Conv (p, u)",
    "Div": "u = Div (f, s) r = Conv (p, u)",
    "Mul of filters of the run": "u = Mul (w, s) r = Conv (p, u)",
    "Relu behind": "u = Mul (f, s) c = Conv (p, u) r = Relu (c)",
    "a scale of the run": "u = DequantizeLinear (b, s, bz) r = Conv (p, u)",
}
SCALE = np.float32(0.03)


def _model(form: str, *, branches: bool) -> ModelProto:
    nodes = f"p = DequantizeLinear (x, xs, xz) {FORMS[form]} y = QuantizeLinear (r, ys, xz)"
    inputs = "bool go, uint8[1, 4, 5, 5] x, float s" + (", float[6, 4, 3, 3] w" if "(w, s)" in nodes else "")
    if branches:
        first, second = (
            nodes.replace("y =", f"{letter}y =").replace("(p,", f"({letter}p,").replace("p = D", f"{letter}p = D")
            for letter in "te"
        )
        nodes = f"""y = If (go) <then_branch = t () => (uint8[a, b, c, d] ty) {{ {first} }},
            else_branch = e () => (uint8[a, b, c, d] ey) {{ {second} }}>"""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g ({inputs}) => (uint8[a, b, c, d] y)
            <float xs = {{0.02}}, uint8 xz = {{3}}, int8 bz = {{5}}, float ys = {{8}}> {{ {nodes} }}"""
    )
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in {"f": FLOATS, "b": BYTES}.items())
    return model


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_they_run(form: str, branches: bool, preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(_model(form, branches=branches), fallback="full", cache_dir=False)
    feeds = {"go": np.array(True), "x": IMAGE, "s": SCALE} | ({"w": FLOATS} if "filters of the run" in form else {})
    filters = (BYTES.astype(np.float32) - 5) * SCALE if "scale of" in form else FLOATS * SCALE
    if form == "Div":
        filters = FLOATS / SCALE
    windows = np.lib.stride_tricks.sliding_window_view((IMAGE.astype(np.float32) - 3) * 0.02, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwij,ocij->nohw", windows, filters)
    right = np.round((np.maximum(sums, 0) if "Relu" in form else sums) / 8) + 3
    (found,) = prepared.run(feeds)
    assert np.abs(found - np.clip(right, 0, 255)).max() <= 1  # a tie may be rounded either way
