# SPDX-License-Identifier: Apache-2.0
"""Rule: a Compress whose condition is known to choose nothing, or to be empty."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def chooses_nothing(site: Site) -> bool:
    """Whether a Compress is known to choose nothing."""
    condition = site.constant(site.input(1))
    none = condition is not None and not condition.any()
    return none or 0 in (site.shape(site.input(1)) or ())


def compress_nothing(site: Site) -> Iterator[ModelProto]:
    """Slice nothing from the axis, or from all elements one behind the other."""
    if not site.is_("Compress") or not chooses_nothing(site):
        return
    body = Body(site)
    x, axis = site.input(0), site.attribute("axis")
    if axis is None:
        x, axis = body("Reshape", x, body.ints(-1)), 0
    yield body.finish(body("Slice", x, body.ints(0), body.ints(0), body.ints(axis)))
