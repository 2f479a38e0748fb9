# SPDX-License-Identifier: Apache-2.0
"""A Cast to a type other than float8 may say how it saturates, which ONNX Runtime refuses."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.parametrize("node", ["Cast <to = 6, saturate = 0> (x)", "CastLike <saturate = 0> (x, like)"])
@pytest.mark.parametrize("preset", ["ort_cpu", "openvino"])
def test_it_is_left_out(request: pytest.FixtureRequest, preset: str, node: str) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 21]> g (float[2] x, int32[1] like) => (int32[2] y) {{ y = {node} }}'
    )
    prepared = request.getfixturevalue(preset).prepare(model)
    (y,) = prepared.run([np.float32([1.7, -2.2]), np.int32([1])])
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, [1, -2])


def test_float8_keeps_it(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 21]> g (float[2] x) => (float[2] y) '
        f"{{ c = Cast <to = {onnx.TensorProto.FLOAT8E5M2}, saturate = 0> (x) y = Cast <to = 1> (c) }}"
    )
    (y,) = ort_cpu.prepare(model).run([np.float32([1, 1e9])])
    np.testing.assert_array_equal(y, [1, np.inf])
