# SPDX-License-Identifier: Apache-2.0
"""Rule: a Compress whose condition is known, and chooses nothing or from nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def chooses_nothing(site: Site) -> bool:
    """Whether a Compress is known to choose nothing."""
    condition = site.constant(site.input(1))
    none = condition is not None and not condition.any()
    return none or 0 in (site.shape(site.input(1)) or ())


def chooses_from_nothing(site: Site) -> bool:
    """Whether a known condition chooses along one axis of what has no elements."""
    if site.attribute("axis") is None or 0 not in (site.shape(site.input(0)) or ()):
        return False
    condition = site.constant(site.input(1))
    return site.is_known(site.input(1)) if condition is None else bool(condition.any())


def compress_nothing(site: Site) -> Iterator[ModelProto]:
    """Slice nothing from the axis, or from all elements one behind the other; or gather what is chosen."""
    if not site.is_("Compress"):
        return
    body = Body(site)
    x, axis = site.input(0), site.attribute("axis")
    condition = site.constant(site.input(1))
    if condition is not None and chooses_from_nothing(site):
        chosen = np.flatnonzero(condition)
        yield body.finish(body("Gather", x, body.ints(*map(int, chosen)), axis=axis))
    if not chooses_nothing(site):
        return
    if axis is None:
        x, axis = body("Reshape", x, body.ints(-1)), 0
    yield body.finish(body("Slice", x, body.ints(0), body.ints(0), body.ints(axis)))
