# SPDX-License-Identifier: Apache-2.0
"""Quotients that OpenVINO (2025.4, 2026.4) gets wrong of constant divisors: it multiplies by their reciprocals, which it keeps in their type.

Source: ``convert_divide.cpp`` of OpenVINO's common transformations. Divisors that are computed of constants: `across_nodes/half_divisors.py`.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.operators.reciprocals import LEAST, inexact_reciprocal
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.tensors import is_whole


def divided(site: Site) -> Defect | None:
    name = site.input(1)
    kind, divisor = site.elem_type(name), site.constant(name)
    if divisor is not None and site.constant(site.input(0)) is not None and kind != TensorProto.DOUBLE:
        return None  # it is computed ahead, as a quotient
    if divisor is not None:
        words = inexact_reciprocal(kind, divisor)
    else:  # too large to be looked at, or in a file: float32 costs nothing there
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
    divisors = facts.namesakes.get(node.input[1])
    if divisors is None:
        return node.input[1] in facts.known and facts.may_hold(TensorProto.FLOAT16)
    return any(map(_may_be_inexact, divisors))


def _may_be_inexact(divisor: TensorProto) -> bool:
    if divisor.data_type not in LEAST:
        return False
    return not is_whole(divisor) or inexact_reciprocal(divisor.data_type, numpy_helper.to_array(divisor)) is not None
