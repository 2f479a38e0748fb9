# SPDX-License-Identifier: Apache-2.0
"""Rule: a Gather whose data or indices are known to have no elements."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def gathers_nothing(site: Site) -> bool:
    """Whether a Gather is known to give nothing."""
    return any(0 in (site.shape(site.input(i)) or ()) for i in (0, 1))


def gather_nothing(site: Site) -> Iterator[ModelProto]:
    """Make a tensor without elements of that shape. Source: Gather's documentation."""
    rank, kind = site.rank(site.input(0)), site.elem_type(site.input(0))
    if not site.is_("Gather") or not gathers_nothing(site) or not rank or kind in (0, TensorProto.STRING):
        return
    body = Body(site)
    axis = site.attribute("axis", 0) % rank
    sizes = body("Shape", site.input(0))
    around = [body("Gather", sizes, body.ints(*axes)) if axes else "" for axes in (range(axis), range(axis + 1, rank))]
    parts = [name for name in (around[0], body("Shape", site.input(1)), around[1]) if name]
    yield body.finish(body.zeros(body("Concat", *parts, axis=0), kind))
