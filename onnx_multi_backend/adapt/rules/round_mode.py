# SPDX-License-Identifier: Apache-2.0
"""Rule: a Cast to float8e8m0, which holds powers of two alone, up, down or to the nearest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_FLOATS = (_T.FLOAT, _T.FLOAT16, _T.BFLOAT16)
_LARGEST = 2.0**127


def to_powers(site: Site) -> bool:
    """Whether it casts to float8e8m0."""
    if site.is_("CastLike"):
        return site.elem_type(site.input(1)) == _T.FLOAT8E8M0
    return site.is_("Cast") and bool(site.attribute("to") == _T.FLOAT8E8M0)


def round_mode(site: Site) -> Iterator[ModelProto]:
    """Take the power of two that the engine rounds to, and correct it: it is the one below, or its double.

    The sign is lost. What is not finite becomes NaN; so does what is beyond the type where `saturate` is 0. Source: Cast's
    documentation since opset 24, and ONNX's evaluator.
    """
    if not to_powers(site) or GUARDED in site.node.name or site.elem_type(site.input(0)) not in _FLOATS:
        return
    mode = site.attribute("round_mode", "up")
    body = Body(site)
    size = body("Abs", body.cast(site.input(0), _T.FLOAT))
    near = body.cast(_cast(body, size), _T.FLOAT)
    # not greater, so that NaN and what is too small for float32 stay
    power = body("Where", body("Greater", near, size), body("Mul", near, body.constant(0.5, _T.FLOAT)), near)
    if mode != "down":
        part = power if mode == "up" else body("Mul", power, body.constant(1.5, _T.FLOAT))
        above = body("Less" if mode == "up" else "LessOrEqual", part, size)
        power = body("Where", above, body("Add", power, power), power)
    beyond = body("Greater", size, body.constant(np.finfo(np.float32).max, _T.FLOAT))
    if not site.attribute("saturate", 1):
        beyond = body("Or", beyond, body("Greater", power, body.constant(_LARGEST, _T.FLOAT)))
    yield body.finish(_cast(body, body("Where", beyond, body.constant(np.nan, _T.FLOAT), power)))


def _cast(body: Body, value: str) -> str:
    return str(body("Cast", value, to=_T.FLOAT8E8M0, name=GUARDED))
