# SPDX-License-Identifier: Apache-2.0
"""Quotients by constants whose reciprocals OpenVINO cannot hold in their type."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def quotient(divisor: np.ndarray) -> onnx.ModelProto:
    kind = "float16" if divisor.dtype == np.float16 else "float"
    made = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g ({kind}[n, 2] x) => ({kind}[n, 2] y) {{ z = Abs (x) y = Div (z, c) }}'
    )
    made.graph.initializer.append(numpy_helper.from_array(divisor, "c"))
    return made


@pytest.mark.parametrize("divisor", [[6e-8], [1e-5, 2], [-1.4e-5, 1e-7], [6e4, 1]])
@pytest.mark.parametrize("name", ["Openvino", "OrtOpenvino"])
def test_float16(name: str, divisor: list[float], request: pytest.FixtureRequest) -> None:
    preset = request.getfixturevalue({"Openvino": "openvino", "OrtOpenvino": "openvino_ep"}[name])
    c = np.float16(divisor)
    prepared = preset.prepare(quotient(c))
    for x in (np.float16([[0, 1e-4], [0.25, 1]]), np.float16([[3, 6e4]])):
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(prepared.run([x])[0], x / c, rtol=5e-4)


def test_ordinary_divisors_stay(openvino: type[omb.Preset]) -> None:
    assert not openvino.prepare(quotient(np.float16([8.0, 0.0]))).adaptations
    assert not openvino.prepare(quotient(np.float32([1e-30, 1e30]))).adaptations


@pytest.mark.parametrize("name", ["Openvino", "OrtOpenvino"])
def test_float32_is_refused_or_left_to_onnx_runtime(name: str, request: pytest.FixtureRequest) -> None:
    preset = request.getfixturevalue({"Openvino": "openvino", "OrtOpenvino": "openvino_ep"}[name])
    c = np.float32([1e-39])
    if name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="reciprocal"):
            preset.prepare(quotient(c))
        return
    x = np.float32([[1e-5, 1]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(preset.prepare(quotient(c)).run([x])[0], x / c, rtol=1e-6)
