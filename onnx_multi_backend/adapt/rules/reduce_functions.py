# SPDX-License-Identifier: Apache-2.0
"""Rule: reductions that are functions of others: ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.intervals.values import WIDE_UNSIGNED
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
#: Since these opsets the axes are an input: of ReduceSum, and of the others.
_SUM, _OTHERS = 13, 18
#: Since this opset there is Where, which a logarithm of exponentials needs: older ones are written in a newer opset.
_WHERE = 9


def reduce_functions(site: Site) -> Iterator[ModelProto]:
    """Write the operator with ReduceSum. Source: the operators' function bodies.

    ReduceLogSumExp subtracts the maximum before, so that no exponential is too large.
    """
    x = site.input(0)
    if site.is_("ReduceL1", "ReduceL2") and reduces_nothing(site) and site.elem_type(x) in WIDE_UNSIGNED:
        body = Body(site, site.opsets)
        yield body.finish(body("Identity", x))
        return
    if site.is_("ReduceL2") and reduces_nothing(site):
        body = Body(site, site.opsets)
        yield body.finish(body("Abs", x))
        return
    if not site.is_("ReduceL1", "ReduceLogSum", "ReduceLogSumExp"):
        return
    if site.op_type != "ReduceL1" and site.elem_type(x) not in _FLOATS:
        return
    body, keep = Body(site, site.opsets), site.attribute("keepdims", 1)
    if site.op_type == "ReduceLogSumExp":
        if 0 in (site.shape(x) or ()):  # there is no largest number, and the sum is 0
            yield body.finish(body("Log", _reduced(body, site, "ReduceSum", x, keep, site.opset)))
            return
        older = site.opset < _WHERE
        body = Body(site) if older else body
        yield body.finish(_log_sum_exp(body, site, keep, _OTHERS if older else site.opset))
        return
    total = _reduced(body, site, "ReduceSum", body("Abs", x) if site.op_type == "ReduceL1" else x, keep, site.opset)
    yield body.finish(total if site.op_type == "ReduceL1" else body("Log", total))


def reduces_nothing(site: Site) -> bool:
    """Whether no axis is given, and none is meant."""
    if not site.attribute("noop_with_empty_axes", 0) or site.attribute("axes"):
        return False
    axes = site.constant(site.input(1)) if site.has_input(1) else np.array([])
    return site.shape(site.input(1)) == [0] if axes is None else not axes.size


def _log_sum_exp(body: Body, site: Site, keep: int, opset: int) -> str:
    x, kind = site.input(0), site.elem_type(site.input(0))
    largest = _reduced(body, site, "ReduceMax", x, 1, opset, name=GUARDED)
    zero = body.constant(0, kind)
    for infinity in (np.inf, -np.inf):  # not to be subtracted from itself
        edge = body.cast(body.constant(infinity, TensorProto.FLOAT), kind)
        inside = body("Less", largest, edge) if infinity > 0 else body("Less", edge, largest)
        largest = body("Where", inside, largest, zero)
    total = _reduced(body, site, "ReduceSum", body("Exp", body("Sub", x, largest)), 1, opset)
    result = body("Add", body("Log", total), largest)
    if keep or reduces_nothing(site):
        return str(result)
    axes = site.attribute("axes")
    if axes and opset < _SUM:
        return str(body("Squeeze", result, axes=axes))
    given = [body.ints(*axes)] if axes else [site.input(1)] if site.has_input(1) else []
    return str(body("Squeeze", result, *given))


def _reduced(body: Body, site: Site, operator: str, x: str, keep: int, opset: int, **more: Any) -> str:
    """Another reduction of the same axes, in an opset."""
    axes = site.attribute("axes")
    more |= site.attributes("axes", "keepdims")
    if axes and opset < (_SUM if operator == "ReduceSum" else _OTHERS):
        return str(body(operator, x, axes=axes, keepdims=keep, **more))
    given = [body.ints(*axes)] if axes else [site.input(1)] if site.has_input(1) else []
    return str(body(operator, x, *given, keepdims=keep, **more))
