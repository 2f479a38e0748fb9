# SPDX-License-Identifier: Apache-2.0
"""Upsample, and Resize before opset 11, as today's Resize: ONNX's version converter forgets where their pixels lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

#: Since this opset Resize says where pixels lie, and since a later one the region need not be given.
RESIZE = 11
_NO_REGION = 13


def older_resize(site: Site) -> Iterator[ModelProto]:
    """The first pixels of both images lie on each other.

    Of a new place between two pixels, nearest takes the one before where an axis grows, the one behind where it shrinks.
    Source: ONNX Runtime's ``upsamplebase.h``; ONNX's documentation of these opsets says nothing of it.
    """
    body = Body(site, {"": site.target})
    how, scales = site.attribute("mode", "nearest"), site.input(1)
    known = site.constant(scales) if scales else np.array(site.attribute("scales"), np.float32)
    if not scales:
        scales = body.constant(known)
    region = "" if site.target >= _NO_REGION else body.constant(np.zeros(0, np.float32))

    def resized(x: str, sizes: str, **options: Any) -> str:
        return str(body("Resize", x, region, sizes, coordinate_transformation_mode="asymmetric", **options))

    x = site.input(0)
    if how != "nearest":
        yield body.finish(resized(x, scales, mode="linear"))
        return
    shrinks = site.op_type == "Resize" and (known is None or bool((known < 1).any()))
    if not shrinks:
        yield body.finish(resized(x, scales, mode=how, nearest_mode="floor"))
        return
    one = body.constant(1, TensorProto.FLOAT)
    if known is None or (known > 1).any():
        x = resized(x, body("Max", scales, one), mode=how, nearest_mode="floor")
    yield body.finish(resized(x, body("Min", scales, one), mode=how, nearest_mode="ceil"))
