# SPDX-License-Identifier: Apache-2.0
"""Rule: Tile whose repeats are known only when it runs."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

#: So many axes are repeated at once: three may be wrong.
_AT_ONCE = 2


def tile(site: Site) -> Iterator[ModelProto]:
    """Repeat a few axes at a time; or gather the elements of each axis in turn, from the first again after the last.

    Source: Tile's documentation.
    """
    x, repeats = site.input(0), site.input(1)
    rank = site.rank(x)
    if not site.is_("Tile") or site.opset < 6 or rank is None or site.constant(repeats) is not None:
        return
    # Of repeats whose number is not told, the result's rank would not be known.
    if rank > _AT_ONCE and GUARDED not in site.node.name and site.shape(repeats) == [rank]:
        yield _a_few_at_a_time(site, rank)
    body = Body(site)
    zero, one = (body.constant(number, TensorProto.INT64) for number in (0, 1))
    sizes, result = body("Shape", x), x
    for axis in range(rank):
        size, times = (body("Gather", v, body.constant(axis, TensorProto.INT64), axis=0) for v in (sizes, repeats))
        steps = body("Range", zero, body("Mul", size, times), one)
        # The divisor is never 0; of an empty axis there are no steps.
        result = body("Gather", result, body("Mod", steps, body("Max", size, one)), axis=axis)
    yield body.finish(result)


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
