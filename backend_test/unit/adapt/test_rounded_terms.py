# SPDX-License-Identifier: Apache-2.0
"""Constants that are added to quantized values before a Conv: OpenVINO rounded them to whole scales."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

#: From the dequantized values `a` to what the Conv reads, `c`.
SUMS = {
    "a number": "c = Add (a, h)",
    "the same first": "c = Add (h, a)",
    "subtracted": "c = Sub (a, h)",
    "subtracted from": "c = Sub (h, a)",
    "for each channel": "c = Add (a, each)",
    "behind a Pad": "p = Pad (a, pads, zero) c = Add (p, h)",
    "before a Pad": "p = Add (a, h) c = Pad (p, pads, zero)",
    "before a MaxPool": "p = Add (a, h) c = MaxPool <kernel_shape = [2, 2]> (p)",
    "behind a Relu": "p = Relu (a) c = Add (p, h)",
}


def _model(between: str, kind: str, h: float, zero: int = 0) -> ModelProto:
    weights = ", ".join(map(str, np.random.default_rng(1).integers(-50, 50, 12)))
    return parsed(
        f"""(float[1, 4, 5, 5] x) => (float[a, b, c, d] y) <float s = {{0.05}}, float t = {{0.02}}, {kind} z = {{{zero}}}, int8 w = {{0}}, float h = {{{h}}},
        float zero = {{0}}, float[1, 4, 1, 1] each = {{0.02, 0.013, 0.031, 0.04}}, int64[8] pads = {{0, 0, 1, 1, 0, 0, 1, 1}},
        int8[3, 4, 1, 1] k = {{{weights}}}> {{ q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z) {between}
        e = DequantizeLinear (k, t, w) y = Conv (c, e) }}"""
    )


@pytest.mark.parametrize("between", SUMS.values(), ids=SUMS)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_term(preset: type[omb.Preset], between: str, kind: str) -> None:
    model = _model(between, kind, 0.02)
    x = np.random.default_rng(0).normal(size=(1, 4, 5, 5)).astype(np.float32)
    (made,) = preset.prepare(model).run([x])
    np.testing.assert_allclose(made, unoptimized(model, x)[0], atol=2e-3)


@pytest.mark.parametrize(("kind", "h", "zero"), [("int8", 0.15, 0), ("uint8", 0.02, 128), ("int8", 0.02, 3)])
def test_what_is_right_stays_as_it_is(openvino: type[omb.Preset], kind: str, h: float, zero: int) -> None:
    model = _model(SUMS["a number"], kind, h, zero)
    prepared = openvino.prepare(model)
    x = np.random.default_rng(0).normal(size=(1, 4, 5, 5)).astype(np.float32)
    np.testing.assert_allclose(prepared.run([x])[0], unoptimized(model, x)[0], atol=2e-3)
    changes = prepared.adaptations
    assert "terms_exact" not in {change.pass_name for change in changes}
