# SPDX-License-Identifier: Apache-2.0
"""Rule: LpNormalization of small numbers."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: Since these opsets operators broadcast, and ReduceSum has its axes as an input.
_BROADCASTS, _AXES = 7, 13


def lp_normalization(site: Site) -> Iterator[ModelProto]:
    """Divide by the norm, to which 1 is added where it is not above 0: NaN stays NaN. Source: LpNormalization's documentation."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    order, axis = site.attribute("p", 2), site.attribute("axis", -1)
    if not site.is_("LpNormalization") or order not in (1, 2):
        return
    body = Body(site, site.opsets if site.opset >= _BROADCASTS else None)
    powers = body("Abs", x) if order == 1 else body("Mul", x, x)
    if _BROADCASTS <= site.opset < _AXES:
        norm = body("ReduceSum", powers, axes=[axis], keepdims=1)
    else:
        norm = body("ReduceSum", powers, body.ints(axis), keepdims=1)
    norm = norm if order == 1 else body("Sqrt", norm)
    none = body("Not", body("Less", body.constant(0, kind), norm))
    yield body.finish(body("Div", x, body("Add", norm, body.cast(none, kind))))
