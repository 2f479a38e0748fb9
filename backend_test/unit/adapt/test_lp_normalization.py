# SPDX-License-Identifier: Apache-2.0
"""LpNormalization of zeros is 0 in every opset, wherever OpenVINO computes it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import onnx_multi_backend as omb

X = np.float32([[[-0.5, -1], [0, 0], [3, 0]], [[np.nan, 1], [0, 2], [0, 0]]])


@pytest.fixture(params=("Openvino", "OrtOpenvino"))
def on_openvino(request: pytest.FixtureRequest) -> type[omb.Preset]:
    return request.getfixturevalue("openvino" if request.param == "Openvino" else "openvino_ep")  # type: ignore[no-any-return]


@pytest.mark.parametrize("opset", [1, 9, 11, 12, 13, 22])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("axis", [-1, 1])
def test_a_row_of_zeros(opset: int, order: int, axis: int, on_openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[N,3,2] x) => (float[N,3,2] y) {{
            y = LpNormalization<p = {order}, axis = {axis}>(x) }}"""
    )
    norm = (np.abs(X) ** order).sum(axis, keepdims=True) ** (1 / order)
    wanted = X / np.where(norm == 0, 1, norm)
    found = on_openvino.prepare(model).run([X])[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
