# SPDX-License-Identifier: Apache-2.0
"""Exact reductions of integers other than plain sums, where a kernel computes them in float32."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.intervals.values import WIDE_UNSIGNED
from onnx_multi_backend.adapt.rules.integer_division import quotient
from onnx_multi_backend.adapt.rules.integer_sums import axes_of, summed_over
from onnx_multi_backend.adapt.rules.reduce_functions import reduces_nothing
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto


def absolutes(body: Body, site: Site, kind: int) -> str | None:
    """ReduceL1."""
    if reduces_nothing(site) and kind in WIDE_UNSIGNED:
        return str(body("Identity", site.input(0)))
    return summed_over(body, site, body("Abs", site.input(0)), kind)


def squares(body: Body, site: Site, kind: int) -> str | None:
    """ReduceSumSquare."""
    return summed_over(body, site, body("Mul", site.input(0), site.input(0)), kind)


def root_of_squares(body: Body, site: Site, kind: int) -> str | None:
    """ReduceL2: a root of floating-point numbers is off by 1 at most. It is held to the sum by a difference, which is small."""
    if reduces_nothing(site):
        return str(body("Identity" if kind in WIDE_UNSIGNED else "Abs", site.input(0)))
    total = squares(body, site, kind)
    if total is None:
        return None
    wide = _T.FLOAT if kind == _T.INT32 else _T.DOUBLE
    given, kind = kind, _T.INT64 if kind == _T.UINT64 else kind
    zero, one, two = (body.constant(n, kind) for n in (0, 1, 2))
    root = body.cast(body("Sqrt", body.cast(total, wide)), kind)
    if given != kind:  # differences wrap around
        total = body.cast(total, kind)
    beyond = body("Sub", body("Mul", root, root), total)
    next_beyond = body("Add", beyond, body("Add", body("Mul", root, two), one))
    up, down = body("Less", next_beyond, one), body("Less", zero, beyond)
    found = body("Add", root, body("Where", down, body.constant(-1, kind), body("Where", up, one, zero)))
    return body.cast(found, given) if given != kind else str(found)


def mean(body: Body, site: Site, kind: int) -> str | None:
    """ReduceMean: the quotient is rounded towards zero, as in both ONNX Runtime and ONNX's evaluator."""
    total, axes, shape = summed_over(body, site, site.input(0), kind), axes_of(site), site.shape(site.input(0))
    if total is None or axes is None or shape is None:
        return None
    sizes = [shape[axis] for axis in axes]
    if None not in sizes:
        count = math.prod(filter(None, sizes))
        return quotient(body, total, body.constant(count, kind), kind) if 0 not in sizes else None
    found = body("Gather", body("Shape", site.input(0)), body.constant(np.array(axes, np.int64)))
    product = body("ReduceProd", found, keepdims=0)
    one = body.constant(1, _T.INT64)
    return quotient(body, total, body.cast(body("Where", body("Less", product, one), one, product), kind), kind)
