# SPDX-License-Identifier: Apache-2.0
"""Rule: normalizations with a scale that only the run tells, scaled by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, numpy_helper

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.scales import scales_at_run_time
from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.tensors import numpy_dtype


def scaled_apart(site: Site) -> Iterator[ModelProto]:
    """Normalize with a scale of 1 and a bias of 0, then multiply and add.

    A kernel that takes both into one factor and one addend makes inf - inf, which is NaN, of an infinite scale. Source: the documentation of
    these operators, which multiply the deviation.
    """
    if not scales_at_run_time(site):
        return
    x, scale, bias, *others = site.node.input
    rank, kind = site.rank(x), site.elem_type(scale)
    if rank is None or rank < 2 or not kind:
        return
    body = Body(site)
    size = body("Shape", scale)
    one = numpy_helper.from_array(np.ones(1, numpy_dtype(kind)))
    ones = body("ConstantOfShape", size, value=one)
    result = body(site.op_type, x, ones, body.zeros(size, kind), *others, name=GUARDED, **site.attributes())
    axes = body.ints(*range(1, rank - 1))
    of_channels = [body("Unsqueeze", name, axes) if rank > 2 else name for name in (scale, bias)]
    if kind != site.elem_type(x):
        of_channels = [body.cast(name, site.elem_type(x)) for name in of_channels]
    yield body.finish(body("Add", body("Mul", result, of_channels[0]), of_channels[1]))
