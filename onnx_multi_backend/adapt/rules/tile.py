# SPDX-License-Identifier: Apache-2.0
"""Rule: Tile whose repeats are known only when it runs, or are of several axes while sizes are open."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

#: So many axes are repeated at once: three may be wrong.
_AT_ONCE = 2
#: So many times an axis is written out.
_FEW = 16


def tile(site: Site) -> Iterator[ModelProto]:
    """Repeat a few axes at a time; or gather the elements of each axis in turn, from the first again after the last.

    Source: Tile's documentation.
    """
    x, repeats = site.input(0), site.input(1)
    rank = site.rank(x)
    if not site.is_("Tile") or site.opset < 6 or rank is None:
        return
    if site.constant(repeats) is not None:
        if repeats_open_axes(site):
            yield _by_axes(site, rank)
        return
    # Of repeats whose number is not told, the result's rank would not be known.
    if rank > _AT_ONCE and GUARDED not in site.node.name and site.shape(repeats) == [rank]:
        yield _a_few_at_a_time(site, rank)
    body = Body(site)
    result = x
    for axis in range(rank):
        times = body("Gather", repeats, body.constant(axis, TensorProto.INT64), axis=0)
        result = _again(body, result, axis, times)
    yield body.finish(result)


def _again(body: Body, value: str, axis: int, times: str) -> str:
    """The elements of an axis, from the first again after the last."""
    zero, one, place = (body.constant(number, TensorProto.INT64) for number in (0, 1, axis))
    size = body("Gather", body("Shape", value), place, axis=0)
    steps = body("Range", zero, body("Mul", size, times), one)
    # The divisor is never 0; of an empty axis there are no steps.
    return str(body("Gather", value, body("Mod", steps, body("Max", size, one)), axis=axis))


def repeats_open_axes(site: Site) -> bool:
    """Whether known repeats are of several axes, and sizes are open: OpenVINO may know of more of them than onnx that they are 1."""
    shape, repeats = site.shape(site.input(0)), site.constant(site.input(1)) if site.opset >= 6 else None
    if shape is None or repeats is None or repeats.shape != (len(shape),) or len(shape) <= _AT_ONCE + 1:
        return False
    return None in shape and int((repeats != 1).sum()) > 1


def _by_axes(site: Site, rank: int) -> ModelProto:
    """Repeat one axis at a time: few times with Concat, since Tiles in a row are taken for one."""
    body, result = Body(site), site.input(0)
    counts = site.constant(site.input(1))
    assert counts is not None
    for axis, count in enumerate(map(int, counts)):
        if 1 < count <= _FEW:
            result = body("Concat", *[result] * count, axis=axis)
        elif count != 1:
            result = _again(body, result, axis, body.constant(count, TensorProto.INT64))
    return body.finish(result)


def _a_few_at_a_time(site: Site, rank: int) -> ModelProto:
    body = Body(site)
    result = site.input(0)
    for first in range(0, rank, _AT_ONCE):
        end = min(first + _AT_ONCE, rank)
        times = body("Slice", site.input(1), body.ints(first), body.ints(end))
        others = [body.ints(*[1] * count) if count else "" for count in (first, rank - end)]
        repeats = body("Concat", *filter(None, (others[0], times, others[1])), axis=0)
        result = body("Tile", result, repeats, name=f"{GUARDED}{first}")
    return body.finish(result)
