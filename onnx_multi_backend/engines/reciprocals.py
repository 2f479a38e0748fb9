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
#: Of larger ones the reciprocal is subnormal, with fewer digits. Those of float32 are seen in no model.
_LARGEST: Mapping[int, float] = {TensorProto.FLOAT16: 2.0**14}


def inexact_reciprocal(kind: int, numbers: np.ndarray[Any, Any]) -> str | None:
    """What is wrong with a reciprocal in an element type; None where all are held."""
    if kind not in LEAST:
        return None
    sizes = np.abs(numbers.astype(np.float64))
    if ((sizes > _NOTHING) & (sizes < LEAST[kind])).any():
        return "is infinite"
    if (np.isfinite(sizes) & (sizes > _LARGEST.get(kind, np.inf))).any():
        return "has few digits"
    return None
