# SPDX-License-Identifier: Apache-2.0
"""DequantizeLinear whose `output_dtype` names another type than the scale's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models

TYPES = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}


@pytest.mark.parametrize("stored", [True, False], ids=["constant", "given"])
@pytest.mark.parametrize("of_axis", [True, False], ids=["along an axis", "one"])
@pytest.mark.parametrize("kind", TYPES)
def test_the_result_is_of_the_type_that_is_named(
    openvino: type[omb.Preset], kind: int, of_axis: bool, stored: bool
) -> None:
    (other,) = TYPES.keys() - {kind}
    x, shape = np.array([[1, 2, 255], [0, 7, 30]], np.uint8), [3] if of_axis else []
    scale, zero = np.array([0.5, 0.25, 2.0][: 3 if of_axis else 1], TYPES[other]), np.full(shape, 3, np.uint8)
    made = models.model(
        [models.node("DequantizeLinear", ["x", "scale", "zero"], ["y"], axis=1, output_dtype=kind)],
        [models.tensor("scale", shape, other), *([] if stored else [models.tensor("x", [2, 3], TensorProto.UINT8)])],
        [models.tensor("y", [2, 3], kind)],
        initializers={"zero": zero, **({"x": x} if stored else {})},
        opsets={"": 23},
    )
    feeds = {"scale": scale.reshape(shape), **({} if stored else {"x": x})}
    (y,) = openvino.prepare(made).run(feeds)
    assert y.dtype == TYPES[kind]
    np.testing.assert_array_equal(y, (x.astype(np.float32) - 3) * scale.astype(np.float32))
