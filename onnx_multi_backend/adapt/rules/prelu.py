# SPDX-License-Identifier: Apache-2.0
"""Rule: PRelu with several slopes."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

#: From this opset on, slopes broadcast from the right; before, one slope a channel stood in a vector.
_BROADCASTS = 7


def along_last_axis(site: Site) -> bool:
    """Whether there is a slope for each element of the last axis."""
    shape = site.shape(site.input(1))
    return site.opset >= _BROADCASTS and shape is not None and len(shape) == 1 and shape != [1]


def prelu(site: Site) -> Iterator[ModelProto]:
    """Give a slope to each channel by its shape, or write the operator as ``x < 0 ? slope * x : x``.

    Source: PRelu's documentation in opsets 6 and 7.
    """
    if not site.is_("PRelu"):
        return
    x, slope = site.input(0), site.input(1)
    rank, shape = site.rank(x), site.shape(slope)
    by_channel = site.opset < _BROADCASTS and shape is not None and len(shape) == 1 and shape != [1]
    if site.opset < _BROADCASTS and (rank is None or shape is None):
        return
    may_be_vector = along_last_axis(site) and rank is None
    # A guarded one was given an axis by another rule, which would do so again.
    for whole in (False,) if GUARDED in site.node.name or may_be_vector else (True, False):
        body = Body(site)
        slopes = slope
        if by_channel and rank is not None and rank > 2:
            slopes = body("Reshape", slope, body.ints(-1, *[1] * (rank - 2)))
        elif along_last_axis(site) and rank not in (None, 1):
            slopes = body("Unsqueeze", slope, body.ints(0))
        if whole:
            yield body.finish(body("PRelu", x, slopes))
        else:
            below = body("Less", x, body.constant(0, site.elem_type(x)))
            yield body.finish(body("Where", below, body("Mul", slopes, x), x))
