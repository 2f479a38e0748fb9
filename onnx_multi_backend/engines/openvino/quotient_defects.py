# SPDX-License-Identifier: Apache-2.0
"""Quotients that OpenVINO (2025.4, 2026.4) gets wrong of constant divisors: it multiplies by their reciprocals, which it keeps in their type.

Source: ``convert_divide.cpp`` of OpenVINO's common transformations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.site import Site

#: The largest numbers; float64 is computed in float32.
_LARGEST: Mapping[int, float] = {
    TensorProto.FLOAT16: float(np.finfo(np.float16).max),
    TensorProto.FLOAT: float(np.finfo(np.float32).max),
    TensorProto.DOUBLE: float(np.finfo(np.float32).max),
}
#: Of larger ones the reciprocal is subnormal, with fewer digits. Those of float32 are seen in no model.
_LARGEST_EXACT: Mapping[int, float] = {TensorProto.FLOAT16: 2.0**14}


def divided(site: Site) -> Defect | None:
    kind = site.elem_type(site.input(1))
    largest, divisor = _LARGEST.get(kind), site.constant(site.input(1))
    if largest is None or divisor is None:
        return None
    sizes = np.abs(divisor.astype(np.float64))
    if ((sizes > 0) & (sizes < 1 / largest)).any():
        return Defect("the reciprocal of a constant divisor, which it multiplies by, is infinite", wrong=True)
    if (np.isfinite(sizes) & (sizes > _LARGEST_EXACT.get(kind, np.inf))).any():
        return Defect("the reciprocal of a constant divisor, which it multiplies by, has few digits", wrong=True)
    return None
