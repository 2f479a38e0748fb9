# SPDX-License-Identifier: Apache-2.0
"""Rule: LpNormalization of small numbers."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def lp_normalization(site: Site) -> Iterator[ModelProto]:
    """Divide by the norm, and by 1 where it is 0. Source: LpNormalization's documentation."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    order = site.attribute("p", 2)
    if not site.is_("LpNormalization") or order not in (1, 2):
        return
    body = Body(site, site.opsets if site.opset >= 13 else None)
    powers = body("Abs", x) if order == 1 else body("Mul", x, x)
    norm = body("ReduceSum", powers, body.ints(site.attribute("axis", -1)), keepdims=1)
    norm = norm if order == 1 else body("Sqrt", norm)
    none = body("Equal", norm, body.constant(0, kind))
    yield body.finish(body("Div", x, body("Where", none, body.constant(1, kind), norm)))
