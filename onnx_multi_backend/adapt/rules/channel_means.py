# SPDX-License-Identifier: Apache-2.0
"""Rule: the mean of each channel of a batch of images, or of each plane of theirs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: The ranks, and the operators.
RANKS = (4, 5)
MEANS = frozenset({"MeanVarianceNormalization", "ReduceMean"})


def takes_channel_means(site: Site) -> bool:
    """Whether it takes means along the first axis and the last two of several channels; the batch is not known to be 1."""
    shape = site.shape(site.input(0)) if site.is_(*MEANS) else None
    if shape is None or len(shape) not in RANKS or shape[1] in (1, None) or shape[0] == 1:
        return False
    default = [] if site.op_type == "ReduceMean" else [0, 2, 3]
    given = site.constant(site.input(1)) if site.has_input(1) else site.attribute("axes", default)
    if given is None or np.ndim(given) != 1:  # axes of another rank are not valid
        return False
    return {int(axis) % len(shape) for axis in given} == {0, len(shape) - 2, len(shape) - 1}


def channel_means(site: Site) -> Iterator[ModelProto]:
    """Make one axis of the last two. Source: ReduceMean's documentation."""
    if not site.is_("ReduceMean") or not takes_channel_means(site):
        return
    last = (site.rank(site.input(0)) or 0) - 1
    kept = site.attribute("keepdims", 1)
    body = Body(site)
    rows = body("Reshape", site.input(0), body.ints(*[0] * (last - 1), -1))
    means = body("ReduceMean", rows, body.ints(0, last - 1), keepdims=kept)
    yield body.finish(body("Unsqueeze", means, body.ints(last)) if kept else means)
