# SPDX-License-Identifier: Apache-2.0
"""Rule: operators whose kernel gets NaN or infinities wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.extremes import LARGEST, guarded
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto

#: Since this opset there is Where; Softmax has had its meaning since a later one, as ReduceSum its axes.
_OLDEST = 9
#: Since this opset Equal takes floating-point numbers.
_EQUAL = 11
_NEWER = {"LogSoftmax": 13, "Softmax": 13}


def special_values(site: Site) -> Iterator[ModelProto]:
    """Guard a node against what its kernel makes of NaN and infinities, or write it with kernels that need no guard.

    ``Less``, ``Equal`` and ``Where`` are right on every engine and processor that was tried; these bodies are
    built on them. Source: the operators' documentation; NaN goes through as in ONNX's reference implementation.
    """
    write = _WRITERS.get(site.op_type) if not site.domain else None
    kind = site.elem_type(site.input(0))
    if write is None or kind not in LARGEST or GUARDED in site.node.name:
        return
    if site.opset < _OLDEST:
        if write is _reduced:
            yield _newer(site)
        return
    if site.opset < _NEWER.get(site.op_type, _OLDEST):
        return
    body = Body(site, site.opsets)
    yield body.finish(write(body, site))


def _as_less(body: Body, site: Site) -> str:
    """``a > b`` is ``b < a``, also where one is NaN."""
    operator = "Less" if site.op_type == "Greater" else "LessOrEqual"
    return str(body(operator, site.input(1), site.input(0)))


def _beyond_numbers(body: Body, site: Site) -> str:
    """Compare with the largest numbers. Infinities of float64 are infinite as float32 too, of which engines hold the constants."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    if kind == _T.DOUBLE:
        x, kind = body.cast(x, _T.FLOAT), _T.FLOAT
    above, below = body.constant(LARGEST[kind], kind), body.constant(-LARGEST[kind], kind)
    found = []
    if site.attribute("detect_positive", 1):
        found.append(body("Less", above, x))
    if site.attribute("detect_negative", 1):
        found.append(body("Less", x, below))
    if not found:
        return str(body("Less", x, x))  # never
    return str(body("Or", *found) if len(found) > 1 else found[0])


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
    given = site.attribute("alpha", 1.0)
    alpha = body.constant(given, kind)
    part = body("Div", x, alpha)
    grown = body("Elu", part) if given >= 0 else body("Sub", body("Exp", part), body.constant(1, kind))
    below = body("Mul", alpha, grown)
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


class _OnnxNodes:
    """Writes nodes in place of a reduction of an ONNX model."""

    def __init__(self, body: Body, site: Site) -> None:
        self._body = body
        self._site = site

    def write(self, op_type: str, *inputs: str) -> str:
        return str(self._body(op_type, *inputs))

    def constant(self, value: float, kind: int) -> str:
        return self._body.constant(value, kind)

    def special(self, value: float) -> str:
        """OpenVINO clamps an infinite constant of float64, and not one that is cast to it."""
        kind = self._site.elem_type(self._site.input(0))
        if kind == _T.DOUBLE:
            return self._body.cast(self._body.constant(value, _T.FLOAT), kind)
        return self._body.constant(value, kind)

    def reduced(self, x: str) -> str:
        return _guarded(self._body, self._site.node, x)

    def is_number(self, x: str) -> str:
        return _is_number(self._body, self._site, x)

    def most(self, flags: str) -> str:
        node = NodeProto()
        node.CopyFrom(self._site.node)
        node.op_type = "ReduceMax"
        return _guarded(self._body, node, self._body("Cast", flags, to=_T.FLOAT))


def _reduced(body: Body, site: Site) -> str:
    """The extreme of no numbers, or of infinities alone, is infinite: kernels begin with the largest finite number."""
    x = site.input(0)
    return guarded(_OnnxNodes(body, site), x, site.elem_type(x), largest=site.op_type == "ReduceMax")


def _newer(site: Site) -> ModelProto:
    """The node in an opset that has Where: it is looked at again there."""
    body, axes = Body(site), site.attribute("axes")
    given = [body.ints(*axes)] if axes else []
    return body.finish(body(site.op_type, site.input(0), *given, keepdims=site.attribute("keepdims", 1)))


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
    "IsInf": _beyond_numbers,
    "LogSoftmax": _softmax,
    "Max": _extreme,
    "Min": _extreme,
    "ReduceMax": _reduced,
    "ReduceMin": _reduced,
    "Relu": _relu,
    "Sign": _unless_nan,
    "Softmax": _softmax,
    "ThresholdedRelu": _thresholded_relu,
}
