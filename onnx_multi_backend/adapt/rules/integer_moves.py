# SPDX-License-Identifier: Apache-2.0
"""Operators that move integers as float32 numbers: the halves of an integer are exact there."""

from __future__ import annotations

from onnx import NodeProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_HALF = 2**16


def in_halves(body: Body, site: Site, kind: int) -> str | None:
    """Move the upper and the lower 16 bits of each element, and put them together again."""
    if site.op_type in ("Resize", "Upsample") and site.attribute("mode", "nearest") != "nearest":
        return None
    lower = body("BitwiseAnd", site.input(0), body.constant(_HALF - 1, kind))
    base = body.constant(_HALF, kind)
    upper = body("Div", body("Sub", site.input(0), lower), base, name=GUARDED)
    upper, lower = (_moved(body, site, half) for half in (upper, lower))
    return str(body("Add", body("Mul", upper, base), lower))


def _moved(body: Body, site: Site, x: str) -> str:
    own = NodeProto()
    own.CopyFrom(site.node)
    own.input[0] = x
    own.name = GUARDED
    return body.add(own)[0]


def lower_triangle(body: Body, site: Site, kind: int) -> str:
    """Trilu: multiply by a triangle of ones."""
    own = NodeProto()
    own.CopyFrom(site.node)
    own.input[0] = body("Expand", body.constant(1, kind), body("Shape", site.input(0)))
    own.name = GUARDED
    return str(body("Mul", site.input(0), body.add(own)[0]))
