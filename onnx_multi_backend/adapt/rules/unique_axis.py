# SPDX-License-Identifier: Apache-2.0
"""Rule: Unique along another axis than the first."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def is_along_later_axis(site: Site) -> bool:
    """Whether Unique compares slices along another axis than the first; where the rank is not known, any but 0."""
    axis = site.attribute("axis")
    if not axis:
        return False
    rank = site.rank(site.input(0))
    return rank is None or axis + rank != 0


def unique_axis(site: Site) -> Iterator[ModelProto]:
    """Make the axis the first one, and put it back in what is found; the slices keep their elements' order, and so theirs."""
    if not site.is_("Unique") or not is_along_later_axis(site) or (rank := site.rank(site.input(0))) is None:
        return
    axis = site.attribute("axis") % rank
    there = [axis, *(i for i in range(rank) if i != axis)]
    back = [there.index(i) for i in range(rank)]
    body = Body(site)
    turned = body("Transpose", site.input(0), perm=there)
    slices, *others = body("Unique", turned, axis=0, sorted=site.attribute("sorted", 1), outputs=4)
    found = (body("Transpose", slices, perm=back), *others)
    yield body.finish(*(value if site.has_output(i) else "" for i, value in enumerate(found)))
