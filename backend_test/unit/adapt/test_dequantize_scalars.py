# SPDX-License-Identifier: Apache-2.0
"""DequantizeLinear of a tensor without axes, by a scale that has one: OpenVINO gave the result that axis."""

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
