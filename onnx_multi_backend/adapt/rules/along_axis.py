# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points of a whole tensor, or of each place on an axis."""

from __future__ import annotations

from collections.abc import Callable

from onnx_multi_backend.adapt.site import Body, Site


def along_axis(body: Body, site: Site) -> Callable[[str], str] | None:
    """What shapes a scale or a zero point for arithmetic with the first input; None where that is not known, or not valid."""
    rank, scales, axis = site.rank(site.input(0)), site.shape(site.input(1)), site.attribute("axis", 1)
    if scales == [] or (scales is not None and len(scales) == 1 and rank is not None and rank < 2):
        return lambda value: value  # one number is for all places, however they lie
    if scales is None or len(scales) > 1 or rank is None or not -rank <= axis < rank:
        return None
    shape = [-1 if i == axis % rank else 1 for i in range(rank)]
    return lambda value: str(body("Reshape", value, body.ints(*shape)))
