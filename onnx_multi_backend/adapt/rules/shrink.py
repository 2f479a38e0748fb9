# SPDX-License-Identifier: Apache-2.0
"""Rule: Shrink."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

_T = TensorProto
_MOST = 2**31
_FLOATS = (_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16)


def shrink(site: Site) -> Iterator[ModelProto]:
    """Choose between the sum, the difference and 0, so that an infinity stays one.

    Compare integers with whole numbers, and round what a fraction is taken from towards zero, as ONNX Runtime's casts do.
    Source: Shrink's documentation, which says nothing of the rounding; ONNX's evaluator casts in the same way.
    """
    x, kind = site.input(0), site.elem_type(site.input(0))
    limit, bias = site.attribute("lambd", 0.5), site.attribute("bias", 0.0)
    if site.is_("Shrink") and kind in _FLOATS:
        yield _of_floats(Body(site, site.opsets if site.opset >= 9 else None), site, limit, bias)
        return
    wide = _T.INT64 if kind in (_T.INT64, _T.UINT32, _T.UINT64) else _T.INT32
    if not site.is_("Shrink") or kind not in INTEGER_BITS or not abs(limit) < _MOST or not abs(bias) < _MOST:
        return
    body = Body(site, site.opsets if site.opset >= 13 else None)
    x = body.cast(x, wide) if wide != kind else x
    given, kind = kind, wide
    zero = body.constant(0, kind)
    above = body("Less", body.constant(math.floor(limit), kind), x)
    below = body("Less", x, body.constant(math.ceil(-limit), kind))
    lowered, raised = _moved(body, x, -bias, kind), _moved(body, x, bias, kind)
    result = body("Where", below, raised, body("Where", above, lowered, zero))
    yield body.finish(body.cast(result, given) if given != kind else result)


def _of_floats(body: Body, site: Site, limit: float, bias: float) -> ModelProto:
    x, kind = site.input(0), site.elem_type(site.input(0))
    below, above = body("Less", x, body.constant(-limit, kind)), body("Less", body.constant(limit, kind), x)
    raised, lowered = (body(operator, x, body.constant(bias, kind)) for operator in ("Add", "Sub"))
    inner = body("Where", above, lowered, body.constant(0, kind))
    return body.finish(body("Where", below, raised, inner))


def _moved(body: Body, x: str, by: float, kind: int) -> str:
    """The sum, rounded towards zero."""
    low, high = math.floor(by), math.ceil(by)
    if low == high:
        return str(body("Add", x, body.constant(low, kind))) if low else x
    negative = body("Less", x, body.constant(-low, kind))  # x + by < 0 where x < -by, which is where x <= ceil(-by) - 1
    return str(body("Add", x, body("Where", negative, body.constant(high, kind), body.constant(low, kind))))
