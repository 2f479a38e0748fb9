# SPDX-License-Identifier: Apache-2.0
"""A Where that reads a DequantizeLinear without a constant zero point: an optimizer of ONNX Runtime before 1.26 died of it."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

NODES = {
    "no zero point": ("", "v = DequantizeLinear (x, s) y = Where (c, v, z)"),
    "as the other choice": ("", "v = DequantizeLinear (x, s) n = Not (c) y = Where (n, z, v)"),
    "a zero point of a run": (", int8 p", "v = DequantizeLinear (x, s, p) y = Where (c, v, z)"),
    "passed on": ("", "v = DequantizeLinear (x, s) w = Identity (v) y = Where (c, w, z)"),
}


@pytest.mark.parametrize("form", NODES)
def test_it_is_computed(preset: type[omb.Preset], form: str) -> None:
    more, nodes = NODES[form]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (int8[n] x, bool[n] c{more}) => (float[n] y)
        <float s = {{0.5}}, float z = {{7}}> {{ {nodes} }}"""
    )
    prepared = preset.prepare(model, fallback="full") if "fallback" in preset.options else preset.prepare(model)
    for numbers in ([3, -4], [5, 6, -7]):
        x, chosen = np.array(numbers, np.int8), np.array(numbers) > 0
        given = [x, chosen, np.array(0, np.int8)] if more else [x, chosen]
        np.testing.assert_array_equal(prepared.run(given)[0], np.where(chosen, np.float32(x) / 2, np.float32(7)))
