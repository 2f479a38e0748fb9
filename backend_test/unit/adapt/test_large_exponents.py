# SPDX-License-Identifier: Apache-2.0
"""Softplus and ReduceLogSumExp of numbers whose exponential is infinite: in opset 18, ONNX Runtime computes that of 16-bit floats."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.parametrize("opset", [13, 17, 18, 19, 22])
@pytest.mark.parametrize(("kind", "large"), [("float16", 661), ("double", 1000), ("float", 100)])
def test_the_softplus_of_a_large_number_is_that_number(
    preset: type[omb.Preset], kind: str, large: int, opset: int
) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({kind}[3] x) => ({kind}[3] y) {{ y = Softplus (x) }}'
    )
    x = np.array([large, 1, -large], {"double": "float64", "float": "float32"}.get(kind, kind))
    result = preset.prepare(model, fallback="full").run(x)[0]
    np.testing.assert_allclose(result, [large, np.log1p(np.e), 0], rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("opset", [18, 20])
def test_the_logarithm_of_a_sum_of_large_exponentials(preset: type[omb.Preset], opset: int) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float16[4] x) => (float16[1] y) {{ y = ReduceLogSumExp (x) }}'
    )
    result = preset.prepare(model, fallback="full").run(np.float16([100, 661, 3, -100]))[0]
    np.testing.assert_allclose(result, [661], rtol=2e-3)
