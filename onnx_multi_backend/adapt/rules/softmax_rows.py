# SPDX-License-Identifier: Apache-2.0
"""Rule: Softmax and its kin before opset 13, which take all axes from one on together."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site


def softmax_rows(site: Site) -> Iterator[ModelProto]:
    """Flatten to rows, and reshape back. Source: Softmax's documentation in opset 11.

    The sum of a row tells of a NaN in it, which then fills the row.
    """
    x, axis = site.input(0), site.attribute("axis", 1)
    if not site.is_("Softmax", "LogSoftmax", "Hardmax") or site.opset >= 13 or (axis < 0 and site.rank(x) is None):
        return
    body = Body(site, site.opsets)
    rows = body(site.op_type, body("Flatten", x, axis=axis), axis=1, name=GUARDED)
    if site.op_type != "Hardmax" and site.opset >= 11:
        total = body("ReduceSum", rows, axes=[1], keepdims=1)
        rows = body("Where", body("Equal", total, total), rows, total)
    yield body.finish(body("Reshape", rows, body("Shape", x)))
