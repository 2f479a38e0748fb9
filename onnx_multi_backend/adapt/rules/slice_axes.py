# SPDX-License-Identifier: Apache-2.0
"""Rule: Slice with known bounds along axes that are known only when it runs."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

#: Before this, a start means the first element whatever it is.
_FAR = 2**30


def slice_axes(site: Site) -> Iterator[ModelProto]:
    """Have the starts depend on the axes, in a way that changes nothing."""
    if not slices_along_unknown_axes(site):
        return
    starts, axes = site.input(1), site.input(3)
    body = Body(site, site.opsets)
    wide, given = site.elem_type(starts), site.elem_type(axes)
    places = body.cast(axes, wide) if given != wide else axes
    lowest = body("Sub", places, body.constant(_FAR, wide))
    others = [site.input(i) for i in range(2, len(site.node.input))]
    yield body.finish(body("Slice", site.input(0), body("Max", starts, lowest), *others, name=GUARDED))


def slices_along_unknown_axes(site: Site) -> bool:
    """Whether the shape is known before anything runs, and the axes are not. The bounds may be told by other shapes."""
    shape = site.shape(site.input(0))
    if not site.is_("Slice") or not site.has_input(3) or site.is_known(site.input(3)) or GUARDED in site.node.name:
        return False
    return shape is not None and None not in shape
