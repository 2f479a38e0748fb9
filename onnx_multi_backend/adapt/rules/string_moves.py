# SPDX-License-Identifier: Apache-2.0
"""Rules: strings that a kernel cannot move. Numbers can be moved in their place, which say where each lies in a list of all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.operators.string_rows import gathers_rows_of_strings
from onnx_multi_backend.adapt.site import Body, Site

#: Since this opset Pad takes strings.
_PADS = 13


def gather_strings(site: Site) -> Iterator[ModelProto]:
    """Gather the numbers: behind an index of a list lies one string. Source: Gather's documentation."""
    if not gathers_rows_of_strings(site):
        return
    body, data = Body(site), site.constant(site.input(0))
    if data is None:
        numbers, strings = _places(body, site, 0), body("Reshape", site.input(0), body.ints(-1))
    else:  # ONNX Runtime 1.24 computes nothing of constant strings beforehand, and then refuses the model
        numbers, strings = body.constant(np.arange(data.size).reshape(data.shape)), body.constant(data.reshape(-1))
    places = body("Gather", numbers, site.input(1), axis=site.attribute("axis", 0))
    yield body.finish(body("Gather", strings, places, axis=0))


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
