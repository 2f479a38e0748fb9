# SPDX-License-Identifier: Apache-2.0
"""Models with Q/DQ nodes that OpenVINO must not compute in 8 bits: what came out had nothing to do with the right numbers."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

_BYTES = np.random.default_rng(5)
#: What is stored, by name.
STORED = {
    "sx": np.float32(0.057),
    "zx": np.uint8(120),
    "z0": np.uint8(0),
    "sw": np.float32(0.11),
    "zw": np.uint8(128),
    "sy": np.float32(0.026),
    "zy": np.uint8(117),
    "wide": _BYTES.integers(0, 255, (4, 6)).astype(np.uint8),
    "image": _BYTES.integers(100, 140, (1, 2, 4, 4)).astype(np.uint8),
    "points": _BYTES.integers(-100, 100, (3, 2, 2, 2)).astype(np.int8),
    "deep": _BYTES.integers(-100, 100, (3, 3, 1, 1)).astype(np.int8),
    "kernels": _BYTES.integers(0, 255, (4, 3, 2, 2)).astype(np.uint8),
    "other": _BYTES.normal(size=(2, 2, 3, 4)).astype(np.float32),
    "halves": np.int64([3, 3]),
    "pair": np.int64([1, 3]),
    "pads": np.int64([0, 0, 0, 0, 0, 1, 0, 0]),
}
FORMS = {
    "Split of weights": "float[2, 4] x : d = WIDE a, b = Split <axis = 1> (d, halves) y = MatMul (X, a) z = MatMul (X, b)",
    "Split of weights that a product reads too": "float[2, 4] x : d = WIDE a, b = Split <axis = 1> (d, halves) y = MatMul (X, d) z = Neg (b)",
    "Conv of constants": "float[1] x : i = DequantizeLinear (image, sx, zx) w = DequantizeLinear (points, sw) c = Conv (i, w) r = Relu (c) q = QuantizeLinear (r, sy, z0) z = DequantizeLinear (q, sy, z0) y = Add (z, x)",
    "Pad behind Concat": "float[n, 2, h, w] x : j = Concat <axis = 0> (X, other) s = QuantizeLinear (j, sx, zw) t = DequantizeLinear (s, sx, zw) p = Pad (t, pads) q = QuantizeLinear (p, sy, zy) d = DequantizeLinear (q, sy, zy) w = DequantizeLinear (deep, sw) y = Conv (d, w) z = Neg (y)",
    "ConvTranspose by gathered weights": "float[1, 2, 3, 4] x : d = DequantizeLinear (kernels, sw, zw) w = Gather <axis = 0> (d, pair) y = ConvTranspose (X, w) z = Neg (y)",
}
SHAPES = {
    "float[2, 4] x": (2, 4),
    "float[1] x": (1,),
    "float[n, 2, h, w] x": (2, 2, 3, 4),
    "float[1, 2, 3, 4] x": (1, 2, 3, 4),
}


def quantized(form: str) -> tuple[ModelProto, np.ndarray]:
    given, _, nodes = FORMS[form].partition(" : ")
    dequantized = "k = QuantizeLinear (x, sx, zx) X = DequantizeLinear (k, sx, zx) " if "X" in nodes else ""
    nodes = nodes.replace("WIDE", "DequantizeLinear (wide, sw, zw)")
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g ({given}) => (float[] y, float[] z) {{ {dequantized}{nodes} }}"""
    )
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in STORED.items() if k in read)
    x = np.random.default_rng(1).normal(size=SHAPES[given]).astype(np.float32)
    return model, x


@pytest.mark.parametrize("form", FORMS)
def test_results_are_right(preset: type[omb.Preset], form: str) -> None:
    model, x = quantized(form)
    prepared = preset.prepare(model, fallback="full")
    steps = {"Conv of constants": 0.12, "Pad behind Concat": 0.35}.get(
        form, 1e-2
    )  # of the last quantization, by weights
    for batch in (x, x[::-1].copy()):
        right = ReferenceEvaluator(model).run(None, {"x": batch})
        for made, expected in zip(prepared.run([batch]), right, strict=True):
            np.testing.assert_allclose(made, expected, rtol=1e-3, atol=steps)
