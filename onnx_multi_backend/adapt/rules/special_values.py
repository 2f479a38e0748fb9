# SPDX-License-Identifier: Apache-2.0
"""Rule: operators whose kernel gets NaN or infinities wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto

#: The largest finite number of each type.
_LARGEST: Mapping[int, float] = {
    _T.FLOAT: float(np.finfo(np.float32).max),
    _T.DOUBLE: float(np.finfo(np.float64).max),
    _T.FLOAT16: float(np.finfo(np.float16).max),
    _T.BFLOAT16: float.fromhex("0x1.fep127"),
}

#: Since this opset there is Where; Softmax has had its meaning since a later one, as ReduceSum its axes.
_OLDEST = 9
_OLDEST_SOFTMAX = 13
#: Since this opset Equal takes floating-point numbers.
_EQUAL = 11


def special_values(site: Site) -> Iterator[ModelProto]:
    """Guard a node against what its kernel makes of NaN and infinities, or write it with kernels that need no guard.

    ``Less``, ``Equal`` and ``Where`` are right on every engine and processor that was tried; these bodies are
    built on them. Source: the operators' documentation; NaN goes through as in ONNX's reference implementation.
    """
    write = _WRITERS.get(site.op_type) if not site.domain else None
    kind = site.elem_type(site.input(0))
    if write is None or kind not in _LARGEST or GUARDED in site.node.name:
        return
    if site.opset < _OLDEST:
        if write is _reduced:
            yield _newer(site)
        return
    if site.op_type in ("Softmax", "LogSoftmax") and site.opset < _OLDEST_SOFTMAX:
        return
    body = Body(site, site.opsets)
    yield body.finish(write(body, site))


def _as_less(body: Body, site: Site) -> str:
    """``a > b`` is ``b < a``, also where one is NaN."""
    operator = "Less" if site.op_type == "Greater" else "LessOrEqual"
    return str(body(operator, site.input(1), site.input(0)))


def _unless_nan(body: Body, site: Site) -> str:
    x = site.input(0)
    return _keep_nan(body, site, x, _guarded(body, site.node, x))


def _extreme(body: Body, site: Site) -> str:
    """Two at a time: kernels return the second where the first is NaN."""
    result, *others = site.node.input
    for other in others:
        result = _keep_nan(body, site, result, body(site.op_type, result, other, name=GUARDED))
    return str(result)


def _relu(body: Body, site: Site) -> str:
    x = site.input(0)
    zero = body.constant(0, site.elem_type(x))
    return str(body("Where", body("Less", x, zero), zero, x))


def _celu(body: Body, site: Site) -> str:
    """A number above 0 is itself: divided by alpha, it might become infinite."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    alpha = body.constant(site.attribute("alpha", 1.0), kind)
    below = body("Mul", alpha, body("Elu", body("Div", x, alpha)))
    return str(body("Where", body("Less", x, body.constant(0, kind)), below, x))


def _thresholded_relu(body: Body, site: Site) -> str:
    x, kind = site.input(0), site.elem_type(site.input(0))
    above = body("Less", body.constant(site.attribute("alpha", 1.0), kind), x)
    return str(body("Where", above, x, body.constant(0, kind)))


def _clip(body: Body, site: Site) -> str:
    result, kind = site.input(0), site.elem_type(site.input(0))
    low, high = (_limit(body, site, i, name, kind) for i, name in ((1, "min"), (2, "max")))
    if low:
        result = body("Where", body("Less", result, low), low, result)
    if high:
        result = body("Where", body("Less", high, result), high, result)
    return result


def _limit(body: Body, site: Site, index: int, name: str, kind: int) -> str:
    """An input since opset 11, before that an attribute."""
    given = site.attribute(name)
    return body.constant(given, kind) if given is not None else site.input(index)


def _reduced(body: Body, site: Site) -> str:
    """The extreme of no numbers, or of infinities alone, is infinite: kernels begin with the largest finite number.

    Half of a finite number does not reach that one, so that the extreme of the halves tells an infinity from it.
    """
    x, kind = site.input(0), site.elem_type(site.input(0))
    below = site.op_type == "ReduceMax"
    largest, infinity = _LARGEST[kind], -np.inf if below else np.inf
    plain = _guarded(body, site.node, x)
    halves = _guarded(body, site.node, body("Mul", x, body.constant(0.5, kind)))
    limit = body.constant(-largest if below else largest, kind)
    finite = body("Less", limit, halves) if below else body("Less", halves, limit)
    result = body("Where", finite, plain, _constant(body, infinity, kind))
    return str(body("Where", _any_nan(body, site, x), _constant(body, np.nan, kind), result))


def _newer(site: Site) -> ModelProto:
    """The node in an opset that has Where: it is looked at again there."""
    body, axes = Body(site), site.attribute("axes")
    given = [body.ints(*axes)] if axes else []
    return body.finish(body(site.op_type, site.input(0), *given, keepdims=site.attribute("keepdims", 1)))


def _constant(body: Body, value: float, kind: int) -> str:
    """OpenVINO clamps an infinite constant of float64, and not one that is cast to it."""
    return body.cast(body.constant(value, _T.FLOAT), kind) if kind == _T.DOUBLE else body.constant(value, kind)


def _any_nan(body: Body, site: Site, x: str) -> str:
    """Whether there is a NaN among the elements that a node reduces."""
    node = NodeProto()
    node.CopyFrom(site.node)
    node.op_type = "ReduceMax"
    count = _guarded(body, node, body("Cast", body("Not", _is_number(body, site, x)), to=_T.FLOAT))
    return str(body("Less", body.constant(0.5, _T.FLOAT), count))


def _softmax(body: Body, site: Site) -> str:
    """What makes one element of a row NaN makes the sum of its exponentials NaN, and so the whole row."""
    plain = _guarded(body, site.node, site.input(0))
    total = body("ReduceSum", plain, body.ints(site.attribute("axis", -1)), keepdims=1)
    return _keep_nan(body, site, total, plain)


def _guarded(body: Body, node: NodeProto, x: str) -> str:
    """The node itself, on another first input."""
    own = NodeProto()
    own.CopyFrom(node)
    own.input[0] = x
    own.name = GUARDED
    return body.add(own)[0]


def _keep_nan(body: Body, site: Site, x: str, result: str) -> str:
    return str(body("Where", _is_number(body, site, x), result, x))


def _is_number(body: Body, site: Site, x: str) -> str:
    # A number equals itself. IsNaN would keep OpenVINO from folding what is computed of shapes, and then from compiling it.
    if site.opset >= _EQUAL:
        return str(body("Equal", x, x))
    kind = site.elem_type(site.input(0))
    zero, one = body.constant(0, kind), body.constant(1, kind)
    return str(body("Or", body("Less", x, one), body("Less", zero, x)))


_WRITERS: Mapping[str, Callable[[Body, Site], str]] = {
    "Celu": _celu,
    "Clip": _clip,
    "Erf": _unless_nan,
    "Exp": _unless_nan,
    "Greater": _as_less,
    "GreaterOrEqual": _as_less,
    "LogSoftmax": _softmax,
    "Max": _extreme,
    "Min": _extreme,
    "ReduceMax": _reduced,
    "ReduceMin": _reduced,
    "Relu": _relu,
    "Softmax": _softmax,
    "ThresholdedRelu": _thresholded_relu,
}
