# SPDX-License-Identifier: Apache-2.0
"""Rule: QuantizeLinear whose type is named by ``output_dtype`` alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

#: So many zero points are written into the model; more are made in each run.
_MOST = 1 << 16


def names_its_type(site: Site) -> bool:
    """Whether the result is of another type than it would be without the attribute."""
    named = site.attribute("output_dtype", 0)
    return site.is_("QuantizeLinear") and not site.has_input(2) and named not in (0, TensorProto.UINT8)


def named_type(site: Site) -> Iterator[ModelProto]:
    """Give it zero points of 0 of that type, one for each scale."""
    if not names_its_type(site):
        return
    scale, kind = site.input(1), site.attribute("output_dtype", 0)
    shape = site.shape(scale)
    body = Body(site, site.opsets)
    sizes = [size for size in shape or () if size is not None]
    if shape is not None and len(sizes) == len(shape) and math.prod(sizes) <= _MOST:
        zero = body.constant(np.zeros(sizes), kind)
    else:
        zero = body.zeros(body("Shape", scale), kind)
    yield body.finish(body("QuantizeLinear", site.input(0), scale, zero, **site.attributes("output_dtype")))
