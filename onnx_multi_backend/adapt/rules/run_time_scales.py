# SPDX-License-Identifier: Apache-2.0
"""Rule: constant integers with a scale or a zero point that is known only when they are used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
#: The places of each constant, its scale and its zero point.
PLACES = {
    "DequantizeLinear": ((0, 1, 2),),
    "QLinearMatMul": ((0, 1, 2), (3, 4, 5)),
    "QLinearConv": ((0, 1, 2), (3, 4, 5)),
}


def run_time_scales(site: Site) -> Iterator[ModelProto]:
    """Scale after a DequantizeLinear by 1; sum the products of integers, and round their scaled sum.

    Source: the operators' documentation.
    """
    if not scaled_at_run_time(site):
        return
    if site.is_("DequantizeLinear"):
        if not site.attribute("block_size", 0):
            yield _dequantized(site)
        return
    if any(site.rank(site.input(i)) != 0 for i in (1, 2, 4, 5, 6, 7) if site.has_input(i)):
        return
    body = Body(site)
    a, a_scale, a_zero, b, b_scale, b_zero = site.node.input[:6]
    if site.is_("QLinearConv"):
        total = body("ConvInteger", a, b, a_zero, b_zero, **site.attributes())
        rank = site.rank(a)
        if site.has_input(8):
            if rank is None:
                return
            total = body("Add", total, body("Reshape", site.input(8), body.ints(1, -1, *[1] * (rank - 2))))
    else:
        total = body("MatMulInteger", a, b, a_zero, b_zero)
    # One number, as the kernels have it: ties are rounded alike.
    scale = body("Div", body("Mul", a_scale, b_scale), site.input(6))
    product = body("Mul", body.cast(total, _T.FLOAT), scale)
    yield body.finish(body("QuantizeLinear", product, body.constant(np.ones((), np.float32)), site.input(7)))


def scaled_at_run_time(site: Site) -> bool:
    """Whether a constant has a scale or a zero point that is not constant."""
    places = PLACES.get(site.op_type, ()) if not site.domain else ()
    return any(
        site.is_known(site.input(x)) and any(site.has_input(i) and not site.is_known(site.input(i)) for i in factors)
        for x, *factors in places
    )


def _dequantized(site: Site) -> ModelProto:
    x, scale, kind = site.input(0), site.input(1), site.elem_type(site.input(1))
    made = site.attribute("output_dtype", 0) or kind
    body = Body(site, site.opsets)
    if made != kind:
        scale, kind = body.cast(scale, _T.FLOAT), _T.FLOAT
    one = body.constant(np.ones((), np.float32), kind)
    integers = body("DequantizeLinear", x, one)
    zero = body.cast(site.input(2), kind) if site.has_input(2) else ""
    rank, scales = site.rank(x), site.rank(site.input(1))
    if scales == 1 and rank is not None and rank > 1:  # one for each place along the axis
        places = body.ints(*(-1 if i == site.attribute("axis", 1) % rank else 1 for i in range(rank)))
        scale = body("Reshape", scale, places)
        zero = body("Reshape", zero, places) if zero else zero
    if zero:
        integers = body("Sub", integers, zero)
    scaled = body("Mul", integers, scale)
    return body.finish(scaled if made == kind else body.cast(scaled, made))
