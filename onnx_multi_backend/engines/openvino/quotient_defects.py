# SPDX-License-Identifier: Apache-2.0
"""Quotients that OpenVINO (2025.4, 2026.4) gets wrong of constant divisors: it multiplies by their reciprocals, which it keeps in their type.

Source: ``convert_divide.cpp`` of OpenVINO's common transformations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.tensors import is_whole

#: The smallest divisor whose reciprocal is finite. Of float64, float32 holds a part of the smaller ones; the others are told of as such.
_LEAST: Mapping[int, float] = {
    TensorProto.FLOAT16: 1 / float(np.finfo(np.float16).max),
    TensorProto.FLOAT: 1 / float(np.finfo(np.float32).max),
    TensorProto.DOUBLE: 1 / float(np.finfo(np.float32).max),
}
_NOTHING = float(np.finfo(np.float32).smallest_subnormal) / 2
#: Of larger ones the reciprocal is subnormal, with fewer digits. Those of float32 are seen in no model.
_LARGEST: Mapping[int, float] = {TensorProto.FLOAT16: 2.0**14}


def divided(site: Site) -> Defect | None:
    name = site.input(1)
    kind, divisor = site.elem_type(name), site.constant(name)
    if divisor is not None:
        words = _inexact(kind, divisor)
    else:  # computed of constants, or too large to be looked at: float32 costs nothing there
        words = "may be infinite" if kind == TensorProto.FLOAT16 and site.is_known(name) else None
    return (
        Defect(f"the reciprocal of a constant divisor, which it multiplies by, {words}", wrong=True) if words else None
    )


def may_be_divided_wrongly(node: NodeProto, facts: Facts) -> bool:
    """Whether `divided` may find something, as far as small constants tell without types."""
    if len(node.input) < 2:
        return False
    if facts.model.functions:  # a name means something else in each
        return True
    name = node.input[1]
    divisors = facts.namesakes.get(name, ())
    if not divisors or name in facts.computed_of_constants:
        known = name in facts.known or name in facts.computed_of_constants
        return known and facts.may_hold(TensorProto.FLOAT16)
    return any(tensor.data_type in _LEAST and _may_be_inexact(tensor) for tensor in divisors)


def _may_be_inexact(divisor: TensorProto) -> bool:
    return not is_whole(divisor) or _inexact(divisor.data_type, numpy_helper.to_array(divisor)) is not None


def _inexact(kind: int, divisor: np.ndarray[Any, Any]) -> str | None:
    """What is wrong with a divisor's reciprocal."""
    if kind not in _LEAST:
        return None
    sizes = np.abs(divisor.astype(np.float64))
    if ((sizes > _NOTHING) & (sizes < _LEAST[kind])).any():
        return "is infinite"
    if (np.isfinite(sizes) & (sizes > _LARGEST.get(kind, np.inf))).any():
        return "has few digits"
    return None
