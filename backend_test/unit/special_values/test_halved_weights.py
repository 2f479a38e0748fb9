# SPDX-License-Identifier: Apache-2.0
"""Convolutions of signed bytes by small weights are exact, on processors without VNNI too, where oneDNN halves these weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import onnx_multi_backend as omb
from onnx_multi_backend.engines.byte_sums import byte_products

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
#: Small enough for no sum of two products to leave 16 bits.
FILTER = RANDOM.integers(-50, 51, (3, 4, 3, 3)).astype(np.int8)
X = RANDOM.integers(-127, 128, (2, 4, 5, 5)).astype(np.int8)
SHARED = """a = DequantizeLinear (x, sx, z) e = DequantizeLinear (k, sw, z)"""
END = "y = QuantizeLinear (f, sy, z)"
FORMS = {
    "of an input": f"{SHARED} f = Conv (a, e) {END}",
    "behind what moves it": f"{SHARED} h = Relu (a) p = Pad (h, pads) f = Conv (p, e) {END}",
    "with a bias": f"{SHARED} f = Conv (a, e, b) {END}",
    "QLinearConv": "y = QLinearConv (x, sx, z, k, sw, z, sy, z)",
    "behind another": f"{SHARED} c = Conv (a, e) q = QuantizeLinear (c, sx, z) d = DequantizeLinear (q, sx, z) f = Conv (d, o) {END}",
}


def _model(nodes: str, inputs: str = "int8[N, 4, 5, 5] x") -> ModelProto:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 19]> g ({inputs}) => (int8[A, B, C, D] y)
        <float sx = {{0.02}}, float sw = {{0.02}}, float sy = {{0.2}}, int8 z = {{0}}, int64[8] pads = {{0, 0, 1, 0, 0, 0, 0, 1}}, float[3] b = {{1, 2, 3}}> {{ {nodes} }}"""
    )
    small = np.ones((2, 3, 1, 1), np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(FILTER, "k"), numpy_helper.from_array(small, "o")])
    return model


@pytest.fixture(params=["this", "without VNNI"], autouse=True)
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "this":
        monkeypatch.setattr(byte_products, "are_exact", lambda: False)


def _is_within_a_step(engine: type[omb.Preset], model: ModelProto, feeds: dict[str, Array]) -> list[str]:
    """Compares with what is computed in floating point: a step where that rounds to another side, and seldom."""
    rep = engine.prepare(model, cache_dir=False)
    right = omb.OrtCpuBackend.prepare(
        model, session_options={"graph_optimization_level": "ORT_DISABLE_ALL"}, cache_dir=False
    )
    found, wanted = rep.run(feeds)[0].astype(int), right.run(feeds)[0].astype(int)
    assert np.count_nonzero(found != wanted) <= found.size // 25, rep.adaptations
    assert np.abs(found - wanted).max() <= 1
    assert np.abs(wanted).max() > 15
    return [change.pass_name for change in rep.adaptations]


@pytest.mark.parametrize("form", FORMS)
def test_convolutions_are_exact(engine: type[omb.Preset], form: str) -> None:
    _is_within_a_step(engine, _model(FORMS[form]), {"x": X})


def test_with_a_scale_that_a_run_brings(engine: type[omb.Preset]) -> None:
    nodes = "q = QuantizeLinear (v, s, z) a = DequantizeLinear (q, sx, z) e = DequantizeLinear (k, sw, z) f = Conv (a, e) y = QuantizeLinear (f, sy, z)"
    x = RANDOM.normal(size=(2, 4, 5, 5)).astype(np.float32)
    feeds = {"v": x, "s": np.array(0.02, np.float32)}
    _is_within_a_step(engine, _model(nodes, "float[N, 4, 5, 5] v, float s"), feeds)


def test_of_unsigned_bytes_small_weights_stay(openvino: type[omb.Preset]) -> None:
    nodes = (
        "a = DequantizeLinear (x, sx, u) e = DequantizeLinear (k, sw, z) f = Conv (a, e) y = QuantizeLinear (f, sy, z)"
    )
    model = _model(nodes, "uint8[N, 4, 5, 5] x")
    model.graph.initializer.append(numpy_helper.from_array(np.uint8(128), "u"))
    passes = _is_within_a_step(openvino, model, {"x": (X.astype(int) + 128).astype(np.uint8)})
    assert "unsigned_weights" not in passes


@pytest.mark.parametrize("zero", [0, 5, 127])
def test_large_weights_that_a_run_may_replace(engine: type[omb.Preset], zero: int) -> None:
    """What is quantized in the model is raised to uint8, and then its products with weights of a run saturate."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 19]> g (float[1, 16, 8] v, int8[2, 16, 2] w) => (int8[A, B, C] y)
        <float s = {{0.05}}, int8 z = {{{zero}}}, float sw = {{0.01}}, float sy = {{0.3}}, int8 o = {{0}}> {{
        q = QuantizeLinear (v, s, z) y = QLinearConv (q, s, z, w, sw, o, sy, o) }}"""
    )
    weights = RANDOM.integers(-125, 126, (2, 16, 2)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    v = RANDOM.uniform(-3, 3, (1, 16, 8)).astype(np.float32)
    _is_within_a_step(engine, model, {"v": v})
