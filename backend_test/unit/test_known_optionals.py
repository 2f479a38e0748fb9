# SPDX-License-Identifier: Apache-2.0
"""An Optional of what is known ahead: ONNX Runtime before 1.27 failed while it computed it beforehand."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

NODES = {
    "a constant": "o = Optional (c) y = OptionalGetElement (o) z = Abs (x)",
    "made of one": "n = Abs (c) o = Optional (n) y = OptionalGetElement (o) z = Abs (x)",
    "asked for": "o = Optional (c) h = OptionalHasElement (o) y = Where (h, c, x) z = Abs (x)",
}


@pytest.mark.parametrize("form", NODES)
def test_it_is_computed(preset: type[omb.Preset], form: str) -> None:
    if preset.name == "Openvino":
        pytest.skip("OpenVINO has no optionals")
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[2] x) => (float[2] y, float[2] z) <float[2] c = {{3, 5}}> {{ {NODES[form]} }}"""
    )
    y, z = preset.prepare(model, fallback="full").run([np.float32([-1, 2])])
    np.testing.assert_array_equal(y, np.float32([3, 5]))
    np.testing.assert_array_equal(z, np.float32([1, 2]))


@pytest.mark.parametrize("cast", ["Cast <to = 1> (c)", "CastLike (c, t)"])
def test_beside_constants_that_are_cast(preset: type[omb.Preset], cast: str) -> None:
    """Before 1.30 ONNX Runtime ended the process: it made float32 of a constant of float16, where nothing is computed beforehand."""
    if preset.name == "Openvino":
        pytest.skip("OpenVINO has no optionals")
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[2] x) => (float[2] y, optional(float[2]) o)
        <float16[2] c = {{15360, 16384}}, float[1] t = {{1}}> {{
            w = {cast} n = Neg (w) o = Optional (n) y = Abs (x) }}"""
    )
    y, o = preset.prepare(model, fallback="full").run([np.float32([-4, 3])])
    np.testing.assert_array_equal(y, np.float32([4, 3]))
    np.testing.assert_array_equal(o, np.float32([-1, -2]))
