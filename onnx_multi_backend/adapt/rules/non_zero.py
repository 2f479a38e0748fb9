# SPDX-License-Identifier: Apache-2.0
"""Rule: NonZero of integers."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

#: What Equal compares in every opset, and since which one it compares all integers.
_COMPARED, _ALL = (TensorProto.INT32, TensorProto.INT64), 11


def non_zero(site: Site) -> Iterator[ModelProto]:
    """Ask for what is not equal to 0."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    if not site.is_("NonZero") or kind not in INTEGER_BITS:
        return
    body = Body(site, site.opsets)
    if kind not in _COMPARED and site.opset < _ALL:
        kind = TensorProto.INT64
        x = body.cast(x, kind)
    yield body.finish(body("NonZero", body("Not", body("Equal", x, body.constant(0, kind)))))
