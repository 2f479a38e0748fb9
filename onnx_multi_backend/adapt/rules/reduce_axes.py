# SPDX-License-Identifier: Apache-2.0
"""Rule: a reduction whose axes are known only when it runs, and are not kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def reduce_axes(site: Site) -> Iterator[ModelProto]:
    """Keep the reduced axes, and reshape to the sizes of the others: how many there are follows from the axes' shape."""
    x, axes = site.input(0), site.input(1)
    if not site.is_(*(f"Reduce{name}" for name in _REDUCTIONS)) or not axes or site.attribute("keepdims", 1):
        return
    rank, count = site.rank(x), site.shape(axes)
    if rank is None or not count or not count[0] or count[0] > rank or site.constant(axes) is not None:
        return
    body = Body(site)
    if count[0] == rank:
        yield body.finish(body(site.op_type, x, keepdims=0))
        return
    zero = body.constant(0, TensorProto.INT64)
    kept = body(site.op_type, x, axes, keepdims=1)
    places = body("Mod", axes, body.constant(rank, TensorProto.INT64))
    ones = body.constant(np.ones(count[0], np.int64))
    marks = body("ScatterElements", body.constant(np.zeros(rank, np.int64)), places, ones, axis=0)
    others = body("Reshape", body("NonZero", body("Equal", marks, zero)), body.ints(rank - count[0]))
    sizes = body("Gather", body("Shape", x), others, axis=0)
    yield body.finish(body("Reshape", kept, sizes, allowzero=1))
