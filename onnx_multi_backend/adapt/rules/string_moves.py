# SPDX-License-Identifier: Apache-2.0
"""Rules: strings that a kernel cannot move. Numbers can be moved in their place, which say where each lies in a list of all."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.adapt.string_rows import gathers_rows_of_strings

#: Since this opset Pad takes strings.
_PADS = 13


def gather_strings(site: Site) -> Iterator[ModelProto]:
    """Gather along the last axis, where each string is copied; where a rank is not known, gather the numbers. Source: Gather's documentation."""
    if not gathers_rows_of_strings(site):
        return
    data, indices, axis = site.input(0), site.input(1), site.attribute("axis", 0)
    rank, of_indices, body = site.rank(data), site.rank(indices), Body(site)
    if rank is None or of_indices is None:
        places = body("Gather", _places(body, site, 0), indices, axis=axis)
        yield body.finish(body("Gather", body("Reshape", data, body.ints(-1)), places, axis=0))
        return
    before, behind = range(axis % rank), range(axis % rank + 1, rank)
    moved = body("Gather", body("Transpose", data, perm=[*before, *behind, axis % rank]), indices, axis=-1)
    gathered = range(rank - 1, rank - 1 + of_indices)
    yield body.finish(body("Transpose", moved, perm=[*before, *gathered, *(place - 1 for place in behind)]))


def pad_strings(site: Site) -> Iterator[ModelProto]:
    """Pad the numbers; the value that pads is the first of the list. Source: Pad's documentation."""
    if not site.is_("Pad") or site.opset < _PADS or site.elem_type(site.input(0)) != TensorProto.STRING:
        return
    body = Body(site)
    if site.rank(site.input(0)) == 0:
        yield body.finish(site.input(0))
        return
    value = site.input(2) or body("Constant", value_strings=[""])
    strings = [body("Reshape", name, body.ints(-1)) for name in (value, site.input(0))]
    given = [_places(body, site, 1), site.input(1), body.constant(0, TensorProto.INT64), *site.node.input[3:]]
    places = body("Pad", *given, **site.attributes())
    yield body.finish(body("Gather", body("Concat", *strings, axis=0), places, axis=0))


def _places(body: Body, site: Site, first: int) -> str:
    """Where each of the strings lies in a list of them, in their shape."""
    start, one = (body.constant(number, TensorProto.INT64) for number in (first, 1))
    end = body("Add", start, body("Size", site.input(0)))
    return str(body("Reshape", body("Range", start, end, one), body("Shape", site.input(0)), allowzero=1))
