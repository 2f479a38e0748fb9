# SPDX-License-Identifier: Apache-2.0
"""Rule: a Split into a number of parts of an axis whose size only a run tells."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def splits_unevenly(site: Site) -> bool:
    """Whether the number of parts may not divide the size of the axis."""
    if not site.is_("Split") or not site.attribute("num_outputs", 0) or site.has_input(1):
        return False
    shape, axis = site.shape(site.input(0)), site.attribute("axis", 0)
    return shape is None or not -len(shape) <= axis < len(shape) or shape[axis] is None


def split_sizes(site: Site) -> Iterator[ModelProto]:
    """Compute the sizes of the parts, of which the last may be smaller. Source: Split's documentation."""
    if not splits_unevenly(site):
        return
    body, parts = Body(site), site.attribute("num_outputs")
    axis = site.attribute("axis", 0)
    size = body("Gather", body("Shape", site.input(0)), body.ints(axis))
    whole = body("Div", body("Add", size, body.ints(parts - 1)), body.ints(parts))
    starts = body("Mul", whole, body.ints(*range(parts)))
    left = body("Max", body("Sub", size, starts), body.constant(0, TensorProto.INT64))
    yield body.finish(*body("Split", site.input(0), body("Min", whole, left), axis=axis, outputs=parts))
