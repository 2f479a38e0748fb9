# SPDX-License-Identifier: Apache-2.0
"""An input of float16 with a default: a fusion of ONNX Runtime before 1.30 ended the process."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.parametrize("node", ["Neg (two)", "Sub (zero, two)", "Mul (minus, two)"])
def test_it_is_computed_and_may_be_given(ort_cpu: type[omb.Preset], node: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 16]> g (float[n] a, float16[1] two) => (float16[1] y, float[n] b)
        <float16[1] two = {{16384}}, float16[1] minus = {{48128}}, float16[1] zero = {{0}}> {{ y = {node} b = Relu (a) }}"""  # 2 and -1 in bits
    )
    prepared = ort_cpu.prepare(model)
    a = np.float32([-1, 2])
    np.testing.assert_array_equal(prepared.run({"a": a})[0], np.float16([-2]), strict=True)
    np.testing.assert_array_equal(prepared.run({"a": a, "two": np.float16([5])})[0], np.float16([-5]), strict=True)
