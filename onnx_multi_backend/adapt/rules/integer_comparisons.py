# SPDX-License-Identifier: Apache-2.0
"""Exact comparisons of integers, and the choice between them, where a kernel rounds them to float32.

Rounding keeps what is 0, and so whether a difference is; differences, products and ``Max`` are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.site import Body, Site


def _equal(body: Body, site: Site, kind: int) -> str:
    a, b = site.input(0), site.input(1)
    return _always(body, a) if a == b else _same(body, a, b, kind)


def _always(body: Body, a: str) -> str:
    """A number is equal to itself; OpenVINO 2025.4 gives its difference from itself another type, and refuses it then."""
    truth = body.cast(a, TensorProto.BOOL)
    return str(body("Or", truth, body("Not", truth)))


def _less(body: Body, site: Site, kind: int) -> str:
    return str(body("Not", _is_larger(body, site, 0, kind)))


def _greater(body: Body, site: Site, kind: int) -> str:
    return str(body("Not", _is_larger(body, site, 1, kind)))


def _less_or_equal(body: Body, site: Site, kind: int) -> str:
    return _is_larger(body, site, 1, kind)


def _greater_or_equal(body: Body, site: Site, kind: int) -> str:
    return _is_larger(body, site, 0, kind)


def _is_larger(body: Body, site: Site, index: int, kind: int) -> str:
    """Whether an operand is the larger one, or both are equal."""
    a, b = site.input(0), site.input(1)
    if a == b:
        return _always(body, a)
    larger = body("Max", a, b)
    return _same(body, larger, site.input(index), kind)


def _same(body: Body, a: str, b: str, kind: int) -> str:
    return str(body("Equal", body("Sub", a, b), body.constant(0, kind)))


def _chosen(body: Body, site: Site, kind: int) -> str:
    condition, a, b = (site.input(i) for i in range(3))
    return str(body("Add", b, body("Mul", body("Sub", a, b), body.cast(condition, kind))))


COMPARED: Mapping[str, Callable[[Body, Site, int], str]] = {
    "Equal": _equal,
    "Greater": _greater,
    "GreaterOrEqual": _greater_or_equal,
    "Less": _less,
    "LessOrEqual": _less_or_equal,
    "Where": _chosen,
}
