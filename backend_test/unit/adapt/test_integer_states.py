# SPDX-License-Identifier: Apache-2.0
"""Integers of 64 bits that a Loop or Scan computes with, in bodies of which OpenVINO takes nodes: it limited them to int32."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

FORMS = {
    "state of a Loop": "y = Loop <body = b (int64 i, bool g, int64[3] s) => (bool h, int64[3] r) { h = Identity (g) r = {op} (s, c) }> (n, , x)",
    "captured by a Loop": "z = Loop <body = b (int64 i, bool g) => (bool h, int64[3] r) { h = Identity (g) r = {op} (x, c) }> (n, yes) y = Gather (z, o)",
    "Scan": "s, y = Scan <num_scan_inputs = 1, body = b (int64 t, int64 e) => (int64 u, int64 r) { u = Identity (t) r = {op} (e, t) }> (c, x)",
}


@pytest.mark.parametrize("operator", ["Add", "Sub", "Max"])
@pytest.mark.parametrize("form", FORMS)
def test_they_are_whole_or_refused(preset: type[omb.Preset], form: str, operator: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (int64[3] x, int64 c) => (int64[3] y) <int64 n = {{1}}, int64 o = {{0}}, bool yes = {{1}}> {{
        {FORMS[form].replace("{op}", operator)} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    compute = {"Add": np.add, "Sub": np.subtract, "Max": np.maximum}[operator]
    small, c = np.array([0, 1000, -5]), np.array(-1)
    np.testing.assert_array_equal(prepared.run([small, c])[0], compute(small, c))
    large = np.array([0, 1 << 62, -(1 << 40)])
    try:
        found = prepared.run([large, c])[0]
    except omb.InputError:
        assert preset is not omb.OrtCpuBackend
    else:
        np.testing.assert_array_equal(found, compute(large, c))
