# SPDX-License-Identifier: Apache-2.0
"""Rule: NonZero of integers."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site


def non_zero(site: Site) -> Iterator[ModelProto]:
    """Ask for what is not equal to 0."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    if not site.is_("NonZero") or kind not in INTEGER_BITS:
        return
    body = Body(site, site.opsets)
    yield body.finish(body("NonZero", body("Not", body("Equal", x, body.constant(0, kind)))))
