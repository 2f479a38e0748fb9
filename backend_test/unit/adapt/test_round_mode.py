# SPDX-License-Identifier: Apache-2.0
"""Casts to float8e8m0, which hold powers of two: OpenVINO rounds all of them to the nearest."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models

_T = TensorProto
#: Of either sign, since the type has none.
X = [0.0, 1e-30, 0.124, 0.25, 1.0, -1.1, 1.49, 1.5, 1.51, 2.0, -3.0, 3.01, 700.0]
TYPES = {_T.FLOAT: np.float32, _T.FLOAT16: np.float16, _T.BFLOAT16: ml_dtypes.bfloat16}
ROUND = {"up": math.ceil, "down": math.floor}


def _cast(kind: int, sizes: list[Any], **attributes: Any) -> onnx.ModelProto:
    return models.model(
        [models.node("Cast", ["x"], ["y"], to=_T.FLOAT8E8M0, **attributes)],
        [models.tensor("x", sizes, kind)],
        [models.tensor("y", sizes, _T.FLOAT8E8M0)],
        opsets={"": 24},
    )


def _rounded(mode: str, number: float) -> float:
    """The power of two; that of 0 is the smallest."""
    size = abs(number)
    if not size:
        return 2.0**-127
    below = 2.0 ** math.floor(math.log2(size))
    return below * (1.0 + (size >= 1.5 * below if mode == "nearest" else mode == "up" and size > below))


@pytest.mark.parametrize("sizes", [["n"], [len(X)]], ids=["open", "fixed"])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("kind", TYPES)
def test_powers_of_two(openvino: type[omb.Preset], kind: int, mode: str, sizes: list[Any]) -> None:
    x = np.array(X, np.float32).astype(TYPES[kind])
    (y,) = openvino.prepare(_cast(kind, sizes, round_mode=mode)).run(x)
    assert y.astype(np.float32).tolist() == [_rounded(mode, float(number)) for number in x]


@pytest.mark.parametrize(
    ("mode", "saturate", "largest"), [("up", 1, 2.0**127), ("up", 0, math.nan), ("down", 0, 2.0**127)]
)
def test_the_end_of_the_range(openvino: type[omb.Preset], mode: str, saturate: int, largest: float) -> None:
    x = np.array([2.0**127, 1.2 * 2.0**127, np.inf, np.nan], np.float32)
    (y,) = openvino.prepare(_cast(_T.FLOAT, [4], round_mode=mode, saturate=saturate)).run(x)
    np.testing.assert_array_equal(y.astype(np.float32), np.array([2.0**127, largest, np.nan, np.nan], np.float32))


def test_cast_like_another_tensor(openvino: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("CastLike", ["x", "like"], ["y"], round_mode="up")],
        [models.tensor("x", [3]), models.tensor("like", [1], _T.FLOAT8E8M0)],
        [models.tensor("y", [3], _T.FLOAT8E8M0)],
        opsets={"": 24},
    )
    (y,) = openvino.prepare(made).run([np.array([1.1, 2.0, 3.0e38], np.float32), np.ones(1, ml_dtypes.float8_e8m0fnu)])
    assert y.astype(np.float32).tolist() == [2.0, 2.0, 2.0**127]
