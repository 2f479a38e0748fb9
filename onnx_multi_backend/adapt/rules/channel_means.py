# SPDX-License-Identifier: Apache-2.0
"""Rule: the mean of each of two or three channels of a batch of images."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: How many channels, and the operators.
CHANNELS = (2, 3)
MEANS = frozenset({"MeanVarianceNormalization", "ReduceMean"})


def takes_channel_means(site: Site) -> bool:
    """Whether it takes means along all axes but the second of four, which is known to be that short; the batch is not known to be 1."""
    shape = site.shape(site.input(0)) if site.is_(*MEANS) else None
    if shape is None or len(shape) != 4 or shape[1] not in CHANNELS or shape[0] == 1:
        return False
    default = [] if site.op_type == "ReduceMean" else [0, 2, 3]
    given = site.constant(site.input(1)) if site.has_input(1) else site.attribute("axes", default)
    return given is not None and {int(axis) % 4 for axis in given} == {0, 2, 3}


def channel_means(site: Site) -> Iterator[ModelProto]:
    """Take it along two axes of three: height and width become one. Source: ReduceMean's documentation."""
    if not site.is_("ReduceMean") or not takes_channel_means(site):
        return
    channels = (site.shape(site.input(0)) or [])[1] or 0
    body = Body(site)
    rows = body("Reshape", site.input(0), body.ints(0, 0, -1))
    means = body("ReduceMean", rows, body.ints(0, 2), keepdims=0)
    kept = site.attribute("keepdims", 1)
    yield body.finish(body("Reshape", means, body.ints(1, channels, 1, 1)) if kept else means)
