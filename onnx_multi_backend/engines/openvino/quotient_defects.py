# SPDX-License-Identifier: Apache-2.0
"""Quotients that OpenVINO (2025.4, 2026.4) gets wrong of constant divisors: it multiplies by their reciprocals, which it keeps in their type.

Source: ``convert_divide.cpp`` of OpenVINO's common transformations. Divisors of float64 that float32 does not hold are told of as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.site import Site

#: The smallest divisor whose reciprocal is finite.
_LEAST: Mapping[int, float] = {
    TensorProto.FLOAT16: 1 / float(np.finfo(np.float16).max),
    TensorProto.FLOAT: 1 / float(np.finfo(np.float32).max),
}
#: Of larger ones the reciprocal is subnormal, with fewer digits. Those of float32 are seen in no model.
_LARGEST: Mapping[int, float] = {TensorProto.FLOAT16: 2.0**14, TensorProto.FLOAT: np.inf}


def divided(site: Site) -> Defect | None:
    divisor = site.constant(site.input(1))
    words = _inexact(site.elem_type(site.input(1)), divisor) if divisor is not None else None
    return (
        Defect(f"the reciprocal of a constant divisor, which it multiplies by, {words}", wrong=True) if words else None
    )


def may_be_divided_wrongly(node: NodeProto, facts: Facts) -> bool:
    """Whether `divided` may find something, as far as small constants tell without types."""
    if len(node.input) < 2 or (not facts.model.functions and node.input[1] not in facts.known):
        return False
    divisor = facts.constants.get(node.input[1])
    return divisor is None or (
        divisor.data_type in _LEAST and _inexact(divisor.data_type, numpy_helper.to_array(divisor)) is not None
    )


def _inexact(kind: int, divisor: np.ndarray[Any, Any]) -> str | None:
    """What is wrong with a divisor's reciprocal."""
    if kind not in _LEAST:
        return None
    sizes = np.abs(divisor.astype(np.float64))
    if ((sizes > 0) & (sizes < _LEAST[kind])).any():
        return "is infinite"
    if (np.isfinite(sizes) & (sizes > _LARGEST[kind])).any():
        return "has few digits"
    return None
