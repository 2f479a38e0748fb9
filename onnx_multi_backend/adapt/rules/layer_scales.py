# SPDX-License-Identifier: Apache-2.0
"""Rule: LayerNormalization by scales that have fewer axes than are normalized."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def broadcast_scales(site: Site) -> tuple[int, list[int]]:
    """How many axes a LayerNormalization normalizes, and the places of the scale and the bias that are known to have fewer."""
    rank = site.rank(site.input(0))
    axis = site.attribute("axis", -1)
    if not site.is_("LayerNormalization") or (rank is None and axis >= 0):
        return 0, []
    count = -axis if axis < 0 else (rank or 0) - axis
    ranks = {i: site.rank(site.input(i)) for i in (1, 2) if site.has_input(i)}
    return count, [i for i, own in ranks.items() if own is not None and own < count]


def layer_scales(site: Site) -> Iterator[ModelProto]:
    """Expand the scale and the bias to the normalized axes. Source: LayerNormalization's documentation, by which they broadcast."""
    count, fewer = broadcast_scales(site)
    if not fewer:
        return
    body = Body(site)
    sizes = body("Shape", site.input(0), start=-count)
    given = [i for i in (1, 2) if site.has_input(i)]
    expanded = [body("Expand", site.input(i), sizes) if i in fewer else site.input(i) for i in given]
    made = body("LayerNormalization", site.input(0), *expanded, outputs=len(site.node.output), **site.attributes())
    yield body.finish(*made)
