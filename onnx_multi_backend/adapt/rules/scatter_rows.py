# SPDX-License-Identifier: Apache-2.0
"""Rule: ScatterND with a reduction."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
#: Behind the last axis of any tensor.
_END = 2**31 - 1


def scatter_rows(site: Site) -> Iterator[ModelProto]:
    """Scatter rows of a matrix, whose first axis counts all places that an index can name.

    Source: the pseudo code in ScatterND's documentation. Each part of an index is looked up in a table of where its rows begin, so that one from the
    end, and one beyond it, are what they are in ScatterND.
    """
    data, indices, updates = (site.input(i) for i in range(3))
    rank, places = site.rank(data), site.shape(indices)
    if not site.is_("ScatterND") or site.attribute("reduction", "none") == "none":
        return
    if not places or not places[-1] or (rank is not None and places[-1] > rank):
        return
    named = places[-1]
    body = Body(site)
    shape = body("Shape", data)
    sizes = [body("Gather", shape, body.ints(axis), axis=0) for axis in range(rank or named)]  # each [1]
    one = body.ints(1)

    def product(factors: list[str]) -> str:
        return functools.reduce(lambda a, b: str(body("Mul", a, b)), factors, one)

    row = body.ints(0)
    for axis in range(named):
        part = body("Gather", body.cast(indices, _T.INT64), body.constant(axis, _T.INT64), axis=-1)
        count = body("Squeeze", sizes[axis], body.ints(0))
        table = body("Range", body.constant(0, _T.INT64), count, body.constant(1, _T.INT64))
        begins = body("Mul", table, product(sizes[axis + 1 : named]))
        row = body("Add", row, body("Gather", begins, body("Reshape", part, body.ints(-1))))
    width = product(sizes[named:])
    if rank is None:
        rest = body("Slice", body("Concat", shape, one, axis=0), body.ints(named), body.ints(_END))
        width = body("ReduceProd", rest, keepdims=1)
    rows = body("Concat", product(sizes[:named]), width, axis=0)
    written = body("Concat", body("Shape", row), width, axis=0)
    result = body(
        "ScatterElements",
        body("Reshape", data, rows, allowzero=1),
        body("Expand", body("Unsqueeze", row, body.ints(1)), written),
        # Held to its shape where that can be: other updates have an error then, as in ScatterND.
        body("Flatten", updates, axis=len(places) - 1)
        if len(places) > 1
        else body("Reshape", updates, written, allowzero=1),
        axis=0,
        reduction=site.attribute("reduction"),
    )
    yield body.finish(body("Reshape", result, shape, allowzero=1))
