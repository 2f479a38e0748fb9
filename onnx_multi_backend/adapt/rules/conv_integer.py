# SPDX-License-Identifier: Apache-2.0
"""Rule: ConvInteger whose channels have zero points of their own."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def conv_integer_zero_points(site: Site) -> Iterator[ModelProto]:
    """Take the zero points out of the sum: conv(x, w - z) is conv(x, w) - z * conv(x, 1), exact in int32."""
    x, w, z = site.input(0), site.input(1), site.input(3)
    rank = site.rank(x)
    if not site.is_("ConvInteger") or not z or rank is None:
        return
    body = Body(site)
    attributes = site.attributes()
    zero_point = [site.input(2)] if site.has_input(2) else []
    ones = body("Expand", body.constant(1, site.elem_type(w)), body("Shape", w))
    plain, counted = (body("ConvInteger", x, weights, *zero_point, **attributes) for weights in (w, ones))
    zeros = body("Reshape", body.cast(z, TensorProto.INT32), body.ints(-1, *[1] * (rank - 2)))
    yield body.finish(body("Sub", plain, body("Mul", counted, zeros)))
