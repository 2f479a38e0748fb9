# SPDX-License-Identifier: Apache-2.0
"""Rules: Mod of floating-point numbers, with the sign of the divisor or by an infinite one."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def divides_back(site: Site) -> bool:
    """Whether it is a Mod with the sign of the dividend that no rule has guarded."""
    of_floats = site.elem_type(site.input(0)) in _FLOATS
    return site.is_("Mod") and bool(site.attribute("fmod", 0)) and of_floats and GUARDED not in site.node.name


def mod_by_more(site: Site) -> Iterator[ModelProto]:
    """Pass on what is less than its divisor, for an engine that divides and multiplies back: by infinity, that makes NaN."""
    if not divides_back(site):
        return
    a, b = site.input(0), site.input(1)
    body = Body(site, site.opsets)
    rest = body("Mod", a, b, fmod=1, name=GUARDED)
    yield body.finish(body("Where", body("Less", body("Abs", a), body("Abs", b)), a, rest))


def floor_mod(site: Site) -> Iterator[ModelProto]:
    """Write ``fmod=0`` with ``fmod=1``: a remainder whose sign is not the divisor's gets the divisor added.

    A zero takes the divisor's sign. Source: Mod's documentation in opset 28.
    """
    a, b = site.input(0), site.input(1)
    kind = site.elem_type(a)
    if not site.is_("Mod") or site.attribute("fmod", 0) or kind not in _FLOATS:
        return
    body = Body(site)
    zero = body.constant(0.0, kind)
    rest = body("Mod", a, b, fmod=1, name=GUARDED)
    # OpenVINO divides and multiplies back, which makes NaN of an infinite divisor.
    # (A constant infinity of float64 would be the largest float32 there; a number less itself is 0, unless it is infinite.)
    finite = [body("Equal", body("Sub", value, value), zero) for value in (a, b)]
    whole = body("And", finite[0], body("And", body("Not", finite[1]), body("Equal", b, b)))
    rest = body("Where", whole, a, rest)
    below = body("Less", b, zero)
    other = body("And", body("Not", body("Equal", rest, zero)), body("Xor", body("Less", rest, zero), below))
    moved = body("Where", other, body("Add", rest, b), rest)
    # A product, because the Where of ONNX Runtime makes 0 of -0.
    sign = body("Sub", body.constant(1, kind), body("Mul", body.constant(2, kind), body.cast(below, kind)))
    yield body.finish(body("Mul", body("Abs", moved), sign))
