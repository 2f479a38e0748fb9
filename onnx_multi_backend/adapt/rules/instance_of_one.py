# SPDX-License-Identifier: Apache-2.0
"""Rule: InstanceNormalization of channels of one element."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site


def may_be_of_one(site: Site) -> bool:
    """Whether each channel may have one element, as far as the shape tells."""
    shape = site.shape(site.input(0))
    return shape is not None and len(shape) > 2 and all(size in (1, None) for size in shape[2:])


def instance_of_one(site: Site) -> Iterator[ModelProto]:
    """Take the bias for the result there, NaN where the element is not finite. Source: the operator's documentation."""
    x, rank = site.input(0), site.rank(site.input(0))
    if not site.is_("InstanceNormalization") or not rank or not may_be_of_one(site) or GUARDED in site.node.name:
        return
    body = Body(site)
    shape = body("Shape", x)
    channels = body("Mul", *(body("Gather", shape, body.constant(axis, TensorProto.INT64)) for axis in (0, 1)))
    bias = body("Unsqueeze", site.input(2), body.ints(*range(1, rank - 1)))
    of_one = body("Add", body("Mul", x, body.constant(0, site.elem_type(x))), bias)
    made = body("InstanceNormalization", *site.node.input, name=GUARDED, **site.attributes())
    yield body.finish(body("Where", body("Equal", body("Size", x), channels), of_one, made))
