# SPDX-License-Identifier: Apache-2.0
"""Rule: Det of small matrices."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

#: Beyond, the sum of products loses more than an elimination would.
_MOST = 3


def det(site: Site) -> Iterator[ModelProto]:
    """Sum up the signed products. Source: Det's documentation, and Leibniz's formula for up to three rows."""
    x = site.input(0)
    shape = site.shape(x)
    if not site.is_("Det") or shape is None or len(shape) < 2 or not shape[-1] or shape[-1] > _MOST:
        return
    if shape[-1] != shape[-2]:
        return
    body = Body(site)
    rows = [_taken(body, x, row, -2) for row in range(shape[-1])]
    cells = [[_taken(body, row, column, -1) for column in range(shape[-1])] for row in rows]
    yield body.finish(_expanded(body, cells))


def _taken(body: Body, x: str, place: int, axis: int) -> str:
    return str(body("Gather", x, body.constant(place, TensorProto.INT64), axis=axis))


def _expanded(body: Body, cells: list[list[str]]) -> str:
    if len(cells) == 1:
        return cells[0][0]
    total = ""
    for i, cell in enumerate(cells[0]):
        product = body("Mul", cell, _expanded(body, [row[:i] + row[i + 1 :] for row in cells[1:]]))
        total = body("Sub" if i % 2 else "Add", total, product) if total else product
    return total
