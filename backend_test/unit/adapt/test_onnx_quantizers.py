# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear of ONNX Runtime's domain, as its quantizer writes them for 16 bits."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("kind", ["uint16", "int16", "uint8", "int8"])
@pytest.mark.parametrize("tail", ["y = Identity (d)", "k = Neg (d) y = Neg (k)"])
def test_numbers_beyond_the_range(preset: type[omb.Preset], opset: int, kind: str, tail: str) -> None:
    """OpenVINO left the limits of 16 bits out; quantizers leave a Relu to them."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g (float[n, 5] x) => (float[n, 5] y) <{kind} z = {{{low}}}, float s = {{0.03125}}> {{
        q = com.microsoft.QuantizeLinear (x, s, z) d = com.microsoft.DequantizeLinear (q, s, z) {tail} }}"""
    )
    x = np.float32([[-3, -0.1, 0.5, 1.53125, 1e4]])
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, [[0, 0, 0.5, 1.53125, (high - low) * 0.03125]], rtol=1e-6)


def test_channels(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[n, 2] x) => (float[n, 2] y) <float[2] s = {0.5, 0.25}, uint16[2] z = {0, 4}> {
        q = com.microsoft.QuantizeLinear <axis = 1> (x, s, z) y = com.microsoft.DequantizeLinear <axis = 1> (q, s, z) }"""
    )
    found = preset.prepare(model, fallback="full").run([np.float32([[-1, -2], [3.5, 3]])])[0]
    np.testing.assert_array_equal(found, [[0, -1], [3.5, 3]])


#: What is computed of x with quantizers Q and D, and the result of numpy's x and the weights, whose scales are those of rows.
FORMS = {
    "weights scaled along the axis that is added up": (
        "q = Q (x, s, z) d = D (q, s, z) k = D <axis = 0> (w, scales) y = MatMul (d, k)",
        lambda x, w, scales: x @ (w * scales[:, None]),
    ),
    "weights that are turned": (
        "d = D <axis = 1> (w, scales) t = Transpose <perm = [1, 0]> (d) y = MatMul (x, t)",
        lambda x, w, scales: x @ (w * scales).T,
    ),
    "weights without a zero point, turned": (
        "d = D (w, s) t = Transpose <perm = [1, 0]> (d) y = MatMul (x, t)",
        lambda x, w, scales: x @ (w * np.float32(0.0625)).T,
    ),
}


@pytest.mark.parametrize("domain", ["", "com.microsoft."])
@pytest.mark.parametrize("form", FORMS)
def test_forms_that_engines_get_wrong(preset: type[omb.Preset], form: str, domain: str) -> None:
    """Of ONNX's operators alone they were known."""
    nodes, right = FORMS[form]
    for letter, operator in (("Q", "QuantizeLinear"), ("D", "DequantizeLinear")):
        nodes = nodes.replace(f"= {letter} ", f"= {domain}{operator} ")
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15, "com.microsoft": 1]> g (float[2, 4] x) => (float[a, b] y) <int8[4, 4] w =
        {{-90, 20, 33, -4, 50, -61, 70, 81, -92, 10, 11, 99, -13, 14, 55, -66}}, float[4] scales = {{0.01, 0.02, 0.005, 0.03}}, float s = {{0.0625}},
        uint8 z = {{128}}> {{ {nodes} }}"""
    )
    w = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype(np.float32)
    x = np.float32([[1, -2, 0.5, 3], [0.25, 0, -1, 2]])
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, right(x, w, np.float32([0.01, 0.02, 0.005, 0.03])), atol=0.02)
