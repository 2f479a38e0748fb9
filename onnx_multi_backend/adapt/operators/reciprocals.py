# SPDX-License-Identifier: Apache-2.0
"""Reciprocals of constants that their type does not hold, as of divisors that an engine multiplies by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto

#: The smallest number whose reciprocal is finite. Of float64, float32 holds a part of the smaller ones; the others are told of as such.
LEAST: Mapping[int, float] = {
    TensorProto.FLOAT16: 1 / float(np.finfo(np.float16).max),
    TensorProto.FLOAT: 1 / float(np.finfo(np.float32).max),
    TensorProto.DOUBLE: 1 / float(np.finfo(np.float32).max),
}
_NOTHING = float(np.finfo(np.float32).smallest_subnormal) / 2
#: Of larger ones the reciprocal is subnormal: of float16 it has fewer digits, of float32 OpenVINO takes it for 0.
_LARGEST_HALF, _LARGEST_FLOAT = 2.0**14, 2.0**126


def inexact_reciprocal(kind: int, numbers: np.ndarray[Any, Any]) -> str | None:
    """What is wrong with a reciprocal in an element type; None where all are held."""
    if kind not in LEAST:
        return None
    sizes = np.abs(numbers.astype(np.float64))
    if ((sizes > _NOTHING) & (sizes < LEAST[kind])).any():
        return "is infinite"
    if kind == TensorProto.FLOAT and is_flushed(numbers):
        return "is taken for 0"
    if kind == TensorProto.FLOAT16 and _is_above(numbers, _LARGEST_HALF):
        return "has few digits"
    return None


def is_flushed(divisors: np.ndarray[Any, Any]) -> bool:
    """Whether OpenVINO takes the reciprocal of one of several float32 divisors for 0; that of a single one it keeps."""
    return divisors.size > 1 and _is_above(divisors, _LARGEST_FLOAT)


def _is_above(numbers: np.ndarray[Any, Any], limit: float) -> bool:
    sizes = np.abs(numbers.astype(np.float64))
    return bool((np.isfinite(sizes) & (sizes > limit)).any())
