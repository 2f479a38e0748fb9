# SPDX-License-Identifier: Apache-2.0
"""Exact comparisons of integers, and the choice between them, where a kernel rounds them to float32.

Rounding keeps what is 0, and so whether a difference is; differences, products and ``Max`` are exact.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.intervals.values import LIMITS
from onnx_multi_backend.adapt.site import Body, Site

_LOW, _HIGH = LIMITS[TensorProto.INT32]


class _Pair(NamedTuple):
    """Two integers: `difference` is the operator whose result is 0 where they are equal."""

    a: str
    b: str
    kind: int
    difference: str


def _always(body: Body, a: str) -> str:
    """A number is equal to itself; OpenVINO 2025.4 gives its difference from itself another type, and refuses it then."""
    truth = body.cast(a, TensorProto.BOOL)
    return str(body("Or", truth, body("Not", truth)))


def _equal(body: Body, pair: _Pair) -> str:
    if pair.a == pair.b:
        return _always(body, pair.a)
    return str(body("Equal", body(pair.difference, pair.a, pair.b), body.constant(0, pair.kind)))


def _less(body: Body, pair: _Pair) -> str:
    return str(body("Not", _greater_or_equal(body, pair)))


def _greater(body: Body, pair: _Pair) -> str:
    return str(body("Not", _less_or_equal(body, pair)))


def _less_or_equal(body: Body, pair: _Pair) -> str:
    return _always(body, pair.a) if pair.a == pair.b else _equal(body, pair._replace(a=body("Max", pair.a, pair.b)))


def _greater_or_equal(body: Body, pair: _Pair) -> str:
    return _always(body, pair.a) if pair.a == pair.b else _equal(body, pair._replace(b=body("Max", pair.a, pair.b)))


_COMPARISONS: Mapping[str, tuple[Callable[[Body, _Pair], str], Callable[[Any, Any], Any]]] = {
    "Equal": (_equal, operator.eq),
    "Greater": (_greater, operator.gt),
    "GreaterOrEqual": (_greater_or_equal, operator.ge),
    "Less": (_less, operator.lt),
    "LessOrEqual": (_less_or_equal, operator.le),
}


def _compared(body: Body, site: Site, kind: int) -> str | None:
    if kind == TensorProto.UINT32 and not all(site.value(name).in_int32 for name in site.constants):
        return None
    compare, _ = _COMPARISONS[site.op_type]
    lowest = any(site.value(name).low == _LOW for name in site.constants)
    return compare(body, _Pair(site.input(0), site.input(1), kind, _difference(lowest)))


def _difference(lowest: bool) -> str:
    """OpenVINO adds the negative of a constant, and the lowest int32 has none."""
    return "BitwiseXor" if lowest else "Sub"


def compared_beyond(body: Body, site: Site, kind: int) -> str | None:
    """Compare with a constant beyond int32, for an engine that keeps integers in 32 bits; None where there is none.

    The constant is limited to int32. Where it lay beyond, every number that such an engine holds is on the same side of it as 0 is.
    """
    if site.op_type not in _COMPARISONS:
        return None
    compare, holds = _COMPARISONS[site.op_type]
    for index in (0, 1):
        given = site.constant(site.input(index))
        if given is None or given.dtype.itemsize < 4:
            continue
        numbers = given.astype(object)
        inside = np.array((numbers >= _LOW) & (numbers <= _HIGH), bool)
        if inside.all():
            continue
        limited = np.asarray(np.clip(numbers, _LOW, _HIGH), object)  # of a scalar, numpy makes an int
        always = np.array(holds(numbers, 0) if index == 0 else holds(0, numbers), bool) & ~inside
        names = [site.input(0), site.input(1)]
        names[index] = body.constant(limited.astype(given.dtype))
        pair = _Pair(names[0], names[1], kind, _difference(_LOW in limited))
        found = body("And", compare(body, pair), body.constant(inside))
        return str(body("Or", found, body.constant(always)))
    return None


def _chosen(body: Body, site: Site, kind: int) -> str:
    """Each of both by 0 or 1: their difference may leave the type, and OpenVINO limits what it computes of constants."""
    condition, a, b = (site.input(i) for i in range(3))
    first, second = (body.cast(truth, kind) for truth in (condition, body("Not", condition)))
    return str(body("Add", body("Mul", a, first), body("Mul", b, second)))


COMPARED: Mapping[str, Callable[[Body, Site, int], str | None]] = {
    **dict.fromkeys(_COMPARISONS, _compared),
    "Where": _chosen,
}
