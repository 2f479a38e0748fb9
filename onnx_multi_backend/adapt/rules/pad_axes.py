# SPDX-License-Identifier: Apache-2.0
"""Rule: Pad of some of the axes, or of all of them in another order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.rules.pad_value import is_padded_at_run_time, padded_with_value
from onnx_multi_backend.adapt.site import Body, Site


def names_axes(site: Site) -> bool:
    """Whether the pads are not those of all axes in their order."""
    if not site.is_("Pad") or not site.has_input(3):
        return False
    rank, axes = site.rank(site.input(0)), site.constant(site.input(3))
    return rank is None or axes is None or axes.tolist() != list(range(rank))


def pad_axes(site: Site) -> Iterator[ModelProto]:
    """Write the pads of all axes, zeros for those that are not named. Source: Pad's documentation."""
    rank = site.rank(site.input(0))
    if not names_axes(site) or rank is None or site.elem_type(site.input(0)) == TensorProto.STRING:
        return
    body = Body(site, site.opsets)
    x, pads, axes = site.input(0), site.input(1), site.input(3)
    sizes, places = site.constant(pads), site.constant(axes)
    if sizes is not None and places is not None:  # constants show what is cropped
        if places.ndim != 1 or sizes.size != 2 * places.size or not ((places >= -rank) & (places < rank)).all():
            return
        every = np.zeros((2, rank), np.int64)
        every[:, places] = sizes.reshape(2, -1)
        wanted = body.ints(*every.ravel())
    else:
        count = body.constant(rank, TensorProto.INT64)
        wide = body.cast(axes, TensorProto.INT64)
        begins = body("Where", body("Less", wide, body.ints(0)), body("Add", wide, count), wide)
        both = body("Concat", begins, body("Add", begins, count), axis=0)
        wanted = body("ScatterElements", body.ints(*[0] * 2 * rank), both, pads)
    if is_padded_at_run_time(site):
        yield body.finish(padded_with_value(body, site, wanted))
        return
    given = [site.input(2)] if site.has_input(2) else []
    yield body.finish(body("Pad", x, wanted, *given, **site.attributes()))
