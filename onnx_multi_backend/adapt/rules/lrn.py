# SPDX-License-Identifier: Apache-2.0
"""Rule: LRN over an even number of channels, or of 5 of a number known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

_LAST = int(np.iinfo(np.int64).max)


def lrn(site: Site) -> Iterator[ModelProto]:
    """Add the squares of the neighbouring channels: one more behind than before. Source: LRN's documentation."""
    x, kind, rank = site.input(0), site.elem_type(site.input(0)), site.rank(site.input(0))
    size = site.attribute("size", 0)
    if not site.is_("LRN") or rank is None or rank < 2 or size < 1 or not kind:
        return
    body = Body(site)
    before = (size - 1) // 2
    pads = np.zeros((2, rank), np.int64)
    pads[:, 1] = before, size - 1 - before
    squares = body("Pad", body("Mul", x, x), body.constant(pads.ravel()), body.constant(0, kind))
    channel = body.ints(1)
    total = ""
    for i in range(size):
        end = i - (size - 1)
        part = body("Slice", squares, body.ints(i), body.ints(end or _LAST), channel)
        total = body("Add", total, part) if total else part
    scaled = body("Mul", total, body.constant(site.attribute("alpha", 1e-4) / size, kind))
    base = body("Add", scaled, body.constant(site.attribute("bias", 1.0), kind))
    power = body("Pow", base, body.constant(site.attribute("beta", 0.75), kind))
    yield body.finish(body("Div", x, power))
