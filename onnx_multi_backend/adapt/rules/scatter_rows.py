# SPDX-License-Identifier: Apache-2.0
"""Rule: ScatterND with a reduction."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto


def scatter_rows(site: Site) -> Iterator[ModelProto]:
    """Scatter rows of a matrix, whose first axis counts all places that an index can name.

    Source: the pseudo code in ScatterND's documentation. An index from the end is counted from the beginning.
    """
    data, indices, updates = (site.input(i) for i in range(3))
    rank, places = site.rank(data), site.shape(indices)
    if not site.is_("ScatterND") or site.attribute("reduction", "none") == "none" or rank is None:
        return
    if not places or not places[-1] or places[-1] > rank:
        return
    named = places[-1]
    body = Body(site)
    shape = body("Shape", data)
    sizes = [body("Gather", shape, body.ints(axis), axis=0) for axis in range(rank)]  # each [1]
    one = body.ints(1)

    def product(factors: list[str]) -> str:
        return functools.reduce(lambda a, b: str(body("Mul", a, b)), factors, one)

    row = body.ints(0)
    for axis in range(named):
        index = body(
            "Reshape",
            body("Gather", body.cast(indices, _T.INT64), body.constant(axis, _T.INT64), axis=-1),
            body.ints(-1),
        )
        index = body("Where", body("Less", index, body.ints(0)), body("Add", index, sizes[axis]), index)
        row = body("Add", row, body("Mul", index, product(sizes[axis + 1 : named])))
    width = product(sizes[named:])
    rows = body("Concat", product(sizes[:named]), width, axis=0)
    written = body("Concat", body("Shape", row), width, axis=0)
    result = body(
        "ScatterElements",
        body("Reshape", data, rows, allowzero=1),
        body("Expand", body("Unsqueeze", row, body.ints(1)), written),
        body("Reshape", updates, written, allowzero=1),
        axis=0,
        reduction=site.attribute("reduction"),
    )
    yield body.finish(body("Reshape", result, shape, allowzero=1))
