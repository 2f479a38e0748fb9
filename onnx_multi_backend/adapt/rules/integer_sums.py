# SPDX-License-Identifier: Apache-2.0
"""Exact sums of integers, where a kernel adds them as floating-point numbers and limits the result."""

from __future__ import annotations

import numpy as np

from onnx_multi_backend.adapt.site import Body, Site


def summed(body: Body, site: Site, kind: int) -> str | None:
    """ReduceSum: the last of the running sums along each axis, which are exact and wrap around.

    A zero is put in front where an axis may be empty.
    """
    return summed_over(body, site, site.input(0), kind)


def summed_over(body: Body, site: Site, x: str, kind: int) -> str | None:
    """The same of another tensor of the shape of a reduction's input; None where its rank or axes are not known."""
    shape = site.shape(site.input(0))
    axes = axes_of(site)
    if shape is None or axes is None:
        return None
    result = x
    for axis in axes:
        if not shape[axis]:
            front = body.ints(*[int(i == axis) for i in range(len(shape))], *[0] * len(shape))
            result = body("Pad", result, front, body.constant(0, kind))
        sums = body("CumSum", result, body.constant(np.array(axis, np.int64)))
        result = body("Gather", sums, body.ints(-1), axis=axis)
    if not site.attribute("keepdims", 1) and axes:
        result = body("Squeeze", result, body.ints(*axes))
    return result


def axes_of(site: Site) -> list[int] | None:
    """The axes, from 0; None where they are not known."""
    rank = site.rank(site.input(0)) or 0
    given = site.attribute("axes")
    if given is None and site.has_input(1):
        found = site.constant(site.input(1))
        if found is None and site.shape(site.input(1)) != [0]:
            return None
        given = [] if found is None else found.ravel().tolist()
    if not given:
        return [] if site.attribute("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({axis % rank for axis in given}) if rank else []
