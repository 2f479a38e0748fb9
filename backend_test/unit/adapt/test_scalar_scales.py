# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear of a tensor without axes, by a scale that has one: OpenVINO gave the result that axis."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.parametrize("zero", [", z", ""])
@pytest.mark.parametrize("given", [True, False], ids=["of a run", "constant"])
@pytest.mark.parametrize("opset", [13, 21])
def test_it_stays_a_scalar(preset: type[omb.Preset], zero: str, given: bool, opset: int) -> None:
    kinds = "float[1] s" + (", int8[1] z" if zero else "")
    inputs = f", {kinds}" if given else ""
    constants = "" if given else "<float[1] s = {0.5}, int8[1] z = {3}>"
    text = f"(int8 x{inputs}) => (float y) {constants} {{ d = DequantizeLinear <axis = 0> (x, s{zero}) y = Abs (d) }}"
    prepared = preset.prepare(
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}'), fallback="full"
    )
    more = [np.float32([0.5]), np.int8([3])][: 1 + bool(zero)] if given else []
    for x in (-100, 6, -100):
        got = prepared.run([np.int8(x), *more])[0]
        assert got.shape == ()
        assert got == abs(x - (3 if zero else 0)) / 2


@pytest.mark.parametrize("beside", ["v = ReduceMax <keepdims = 0> (m, axes)", "v = ReduceSum <keepdims = 0> (m, axes)"])
def test_it_stays_a_scalar_between_both(preset: type[omb.Preset], beside: str) -> None:
    """A ReduceMax is mended in OpenVINO's own graph, and its QuantizeLinear is written as operators by element then."""
    text = f"""(float x, float[4, 3] m) => (float y, float[n] v) <int64[1] axes = {{1}}, float[1] s = {{0.5}}, uint8[1] z = {{128}}> {{
        {beside} q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }}"""
    prepared = preset.prepare(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}'))
    m = np.arange(12, dtype=np.float32).reshape(4, 3)
    for x in (3.5, -100, 3.5):
        got = prepared.run([np.float32(x), m])[0]
        assert got.shape == ()
        assert got == max(x, -64)
