# SPDX-License-Identifier: Apache-2.0
"""Rule: Pad that goes round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def pad_wrap(site: Site) -> Iterator[ModelProto]:
    """Gather the elements of each axis in turn, once round and on. Negative pads crop first, and what is left goes round.

    Source: Pad's documentation, and for negative pads ONNX's cases.
    """
    data, pads = site.input(0), site.input(1)
    axes = site.constant(site.input(3)) if site.has_input(3) else range(site.rank(data) or 0)
    if not site.is_("Pad") or site.attribute("mode") != "wrap" or axes is None or np.ndim(axes) != 1 or not len(axes):
        return
    body = Body(site)
    zero, one = (body.constant(number, TensorProto.INT64) for number in (0, 1))
    crops, more = body("Neg", body("Min", pads, zero)), body("Max", pads, zero)
    sizes, result = body("Shape", data), data

    def of(values: str, place: int) -> str:
        return str(body("Gather", values, body.constant(place, TensorProto.INT64), axis=0))

    for i, axis in enumerate(int(axis) for axis in axes):
        begin, end = i, i + len(axes)
        left = body("Sub", of(sizes, axis), body("Add", of(crops, begin), of(crops, end)))
        steps = body("Range", body("Neg", of(more, begin)), body("Add", left, of(more, end)), one)
        index = body("Add", body("Mod", steps, left), of(crops, begin))
        result = body("Gather", result, index, axis=axis)
    yield body.finish(result)
