# SPDX-License-Identifier: Apache-2.0
"""Rule: TensorScatter."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def tensor_scatter(site: Site) -> Iterator[ModelProto]:
    """Write the update into the cache element by element. Source: the pseudo code in TensorScatter's documentation."""
    cache, update, starts = (site.input(i) for i in range(3))
    rank = site.rank(cache)
    if not site.is_("TensorScatter") or not rank:
        return
    axis = site.attribute("axis", -2) % rank
    body = Body(site)

    def size(value: str) -> str:
        return str(body("Gather", body("Shape", value), body.constant(axis, TensorProto.INT64), axis=0))

    zero, one = body.constant(0, TensorProto.INT64), body.constant(1, TensorProto.INT64)
    shape = [1] * rank
    shape[axis] = -1
    index = body("Reshape", body("Range", zero, size(update), one), body.ints(*shape))
    if starts:
        index = body("Add", index, body("Reshape", starts, body.ints(-1, *[1] * (rank - 1))))
    if site.attribute("mode", "linear") == "circular":
        index = body("Mod", index, size(cache))
    elif starts:  # below 0 OpenVINO writes before the cache, where it refuses what lies behind it
        index = body("Where", body("Less", index, zero), size(cache), index)
    # OpenVINO writes beyond the cache where the other sizes differ, which is not valid: put together they are refused.
    first_row = body("Slice", cache, body.ints(0), body.ints(1), body.ints(axis))
    rows = body("Concat", first_row, update, axis=axis)
    update = body("Slice", rows, body.ints(1), body.ints(2**31 - 1), body.ints(axis))
    indices = body("Expand", index, body("Shape", update))
    yield body.finish(body("ScatterElements", cache, indices, update, axis=axis))
