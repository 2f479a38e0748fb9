# SPDX-License-Identifier: Apache-2.0
"""Rule: a Gemm by a matrix with as many columns as a run tells, with a value for each column."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def columns(site: Site) -> int | None:
    """For how many columns a Gemm has a value, where a run alone tells how many there are."""
    if not site.is_("Gemm") or site.elem_type(site.input(0)) not in _FLOATS or not site.attribute("beta", 1.0):
        return None
    sizes, other = site.shape(site.input(2)), site.shape(site.input(1))
    if not sizes or None in sizes or not 1 < math.prod(size or 0 for size in sizes) == sizes[-1]:
        return None
    if site.is_known(site.input(1)) and other and None not in other:
        return None
    return sizes[-1]  # a declared size of what is computed may not be known to the engine


def column_constants(site: Site) -> Iterator[ModelProto]:
    """Add them behind another axis, so that no kernel takes them into the product."""
    if columns(site) is None:
        return
    body = Body(site)
    axis = body.ints(0)
    product = body("Gemm", *site.node.input[:2], **site.attributes("beta", "broadcast"))
    beta, constant = site.attribute("beta", 1.0), site.input(2)
    if beta != 1:
        constant = body("Mul", constant, body.constant(beta, site.elem_type(constant)))
    made = body("Add", body("Unsqueeze", product, axis), constant)
    yield body.finish(body("Squeeze", made, axis))
