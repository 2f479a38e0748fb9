# SPDX-License-Identifier: Apache-2.0
"""Rule: LayerNormalization by scales that have fewer axes than are normalized, or more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def broadcast_scales(site: Site) -> tuple[int, list[int]]:
    """How many axes a LayerNormalization normalizes, and the places of the scale and the bias that are known to have fewer or more."""
    rank = site.rank(site.input(0))
    axis = site.attribute("axis", -1)
    if not site.is_("LayerNormalization") or (rank is None and axis >= 0):
        return 0, []
    count = -axis if axis < 0 else (rank or 0) - axis
    ranks = {i: site.rank(site.input(i)) for i in (1, 2) if site.has_input(i)}
    return count, [i for i, own in ranks.items() if own not in (None, count)]


def layer_scales(site: Site) -> Iterator[ModelProto]:
    """Expand the scale and the bias to the normalized axes, or multiply and add behind.

    Source: LayerNormalization's documentation, by which they broadcast to the input.
    """
    count, others = broadcast_scales(site)
    if not others:
        return
    body = Body(site)
    sizes = body("Shape", site.input(0), start=-count)
    given = [i for i in (1, 2) if site.has_input(i)]
    if all((site.rank(site.input(i)) or 0) < count for i in others):
        scales = [body("Expand", site.input(i), sizes) if i in others else site.input(i) for i in given]
        yield body.finish(*_normalized(body, site, *scales))
        return
    one = body.constant(np.ones((), np.float32), site.elem_type(site.input(0)))
    made = _normalized(body, site, body("Expand", one, sizes))
    made[0] = body("Mul", made[0], site.input(1))
    if site.has_input(2):
        made[0] = body("Add", made[0], site.input(2))
    yield body.finish(*made)


def _normalized(body: Body, site: Site, *scales: str) -> list[str]:
    outputs = len(site.node.output)
    return list(body("LayerNormalization", site.input(0), *scales, outputs=outputs, **site.attributes()))
