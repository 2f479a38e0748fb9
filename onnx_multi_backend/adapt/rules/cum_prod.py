# SPDX-License-Identifier: Apache-2.0
"""Rule: CumProd."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def cum_prod(site: Site) -> Iterator[ModelProto]:
    """Multiply, for each place on the axis, what comes before it, ones elsewhere. Source: CumProd's documentation."""
    x = site.input(0)
    rank = site.rank(x)
    if not site.is_("CumProd") or not rank:
        return
    body = Body(site)
    axis = site.constant(site.input(1))
    if axis is not None and axis.size != 1:  # not valid
        return
    if axis is not None:
        yield body.finish(_along(body, site, int(axis.item()) % rank, rank))
        return
    given = body("Mod", body.cast(site.input(1), TensorProto.INT64), body.constant(rank, TensorProto.INT64))
    result = _along(body, site, 0, rank)
    for place in range(1, rank):
        chosen = body("Equal", given, body.constant(place, TensorProto.INT64))
        result = body("Where", chosen, _along(body, site, place, rank), result)
    yield body.finish(result)


def _along(body: Body, site: Site, place: int, rank: int) -> str:
    """The products along one axis: behind it a new one tells which elements belong to the product."""
    x = site.input(0)
    size = _size(body, x, place)
    index = body("Range", body.constant(0, TensorProto.INT64), size, body.constant(1, TensorProto.INT64))
    here, there = body("Unsqueeze", index, body.ints(1)), body("Unsqueeze", index, body.ints(0))
    names = ("Greater", "Less") if site.attribute("exclusive", 0) else ("GreaterOrEqual", "LessOrEqual")
    kept = body(names[1] if site.attribute("reverse", 0) else names[0], here, there)
    others = [i for i in range(rank + 1) if i not in (place, place + 1)]
    mask = body("Unsqueeze", kept, body.ints(*others)) if others else kept
    chosen = body("Where", mask, body("Unsqueeze", x, body.ints(place)), body.constant(1, site.elem_type(x)))
    return str(body("ReduceProd", chosen, body.ints(place + 1), keepdims=0))


def _size(body: Body, x: str, axis: int) -> str:
    return str(body("Gather", body("Shape", x), body.constant(axis, TensorProto.INT64), axis=0))
