# SPDX-License-Identifier: Apache-2.0
"""Rule: MaxUnpool."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, helper

from onnx_multi_backend.adapt.site import Body, Site


def max_unpool(site: Site) -> Iterator[ModelProto]:
    """Scatter the elements into zeros, each to its place in the result as one row.

    The indices count in the shape of the result, also in an explicit one, as MaxPool's do in that of its input. Sources:
    MaxUnpool's documentation; onnx/onnx#2398 and #8413.
    """
    x, indices = site.input(0), site.input(1)
    kernel = np.array(site.attribute("kernel_shape", []), np.int64)
    if not site.is_("MaxUnpool") or not len(kernel) or not site.elem_type(x):
        return
    body = Body(site)
    if site.has_input(2):
        shape = site.input(2)
    else:
        strides = np.array(site.attribute("strides", [1] * len(kernel)), np.int64)
        pads = np.array(site.attribute("pads", [0] * 2 * len(kernel)), np.int64).reshape(2, -1).sum(axis=0)
        spatial = body("Mul", body("Shape", x, start=2), body.ints(*strides))
        spatial = body("Add", spatial, body.ints(*(kernel - strides - pads)))
        shape = body("Concat", body("Shape", x, end=2), spatial, axis=0)
    zero = helper.make_tensor("zero", site.elem_type(x), [1], [0])
    zeros = body("ConstantOfShape", body("ReduceProd", shape, keepdims=1), value=zero)
    row = body.ints(-1)
    scattered = body("ScatterElements", zeros, body("Reshape", indices, row), body("Reshape", x, row), axis=0)
    yield body.finish(body("Reshape", scattered, shape))
