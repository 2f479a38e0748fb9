# SPDX-License-Identifier: Apache-2.0
"""Exact sums of integers along axes that are known only at run time: a kernel that adds in float32 adds their digits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto, numpy_helper

from onnx_multi_backend.adapt.rules.integer_division import quotient
from onnx_multi_backend.adapt.rules.integer_sums import axes_of
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_OPERATORS = frozenset({"ReduceL1", "ReduceMean", "ReduceSum", "ReduceSumSquare"})
#: The signed type of each: an engine adds digits of both in the same way, but for the mean.
_SIGNED: Mapping[int, int] = {_T.INT32: _T.INT32, _T.INT64: _T.INT64, _T.UINT32: _T.INT32, _T.UINT64: _T.INT64}
#: Up to 2**16 digits of so many bits have a sum that is exact in float32.
_BITS = 8


def summed_in_digits(body: Body, site: Site, kind: int, width: int) -> str | None:
    """A reduction of integers that an engine keeps in `width` bits; the result wraps around.

    None where the shape and the axes are known, and running sums do; or where there may be no axes.
    """
    if site.op_type not in _OPERATORS or kind not in _SIGNED:
        return None
    if site.attribute("noop_with_empty_axes", 0) and not (site.attribute("axes") or site.has_input(1)):
        return None
    given_kind, kind = kind, _SIGNED[kind]
    if given_kind != kind and site.op_type not in ("ReduceSum", "ReduceSumSquare"):
        return None
    if site.shape(site.input(0)) is not None and axes_of(site) is not None:
        return None
    x, keepdims = site.input(0), site.attribute("keepdims", 1)
    everything = not site.attribute("axes") and not site.has_input(1)
    axes = body.ints(0) if everything else _axes(body, site)
    if axes is None:
        return None
    ones = ""
    if everything:  # a list of all axes may turn out empty, which would stand for the digits too
        if keepdims:
            one = numpy_helper.from_array(np.array([1]))
            ones = body("ConstantOfShape", body("Shape", body("Shape", x)), value=one)
        x, keepdims = body("Reshape", x, body.ints(-1)), 0
    if given_kind != kind:
        x = body.cast(x, kind)
    if site.op_type == "ReduceL1":
        x = body("Abs", x)
    elif site.op_type == "ReduceSumSquare":
        x = body("Mul", x, x)
    # The digits are a last axis: an engine that leaves BitwiseAnd to another does so once, where the rank is known.
    places = range(width // _BITS)
    bits = [(2**_BITS - 1) << (_BITS * place) for place in places[:-1]]
    masks = body.constant(np.array([*bits, -1 << (_BITS * places[-1])], np.int64), kind)  # the last one is signed
    scales = body.constant([2.0 ** (-_BITS * place) for place in places], _T.FLOAT)
    masked = body.cast(body("BitwiseAnd", body("Unsqueeze", x, body.ints(-1)), masks), _T.FLOAT)
    sums = body.cast(body("ReduceSum", body("Mul", masked, scales), axes, keepdims=keepdims), kind)
    worth = body.constant(np.array([2 ** (_BITS * place) for place in places], np.int64), kind)
    running = body("CumSum", body("Mul", sums, worth), body.constant(-1, _T.INT64))
    total = str(body("Gather", running, body.constant(-1, _T.INT64), axis=-1))
    if site.op_type == "ReduceMean":
        sizes = body("Gather", body("Shape", x), axes)
        count = body("Max", body("ReduceProd", sizes, keepdims=0), body.constant(1, _T.INT64))
        total = quotient(body, total, body.cast(count, kind), kind)
    if ones:
        total = str(body("Reshape", total, ones))
    return total if given_kind == kind else body.cast(total, given_kind)


def _axes(body: Body, site: Site) -> str | None:
    """The axes that are given, from 0, one at least; None where there may be none."""
    known = site.rank(site.input(0))
    rank = body.constant(known, _T.INT64) if known is not None else body("Size", body("Shape", site.input(0)))
    given = site.attribute("axes")
    shape = site.shape(site.input(1)) if not given else [len(given)]
    if not shape or not shape[0] or known == 0:
        return None
    axes = body.ints(*given) if given else site.input(1)
    behind = body.cast(body("Less", axes, body.constant(0, _T.INT64)), _T.INT64)
    return str(body("Add", axes, body("Mul", behind, rank)))
