# SPDX-License-Identifier: Apache-2.0
"""Rule: QLinearConv and QLinearMatMul, written with Q/DQ nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.operators.products import adds_nothing
from onnx_multi_backend.adapt.site import Body, Site

#: The first opset in which DequantizeLinear has an axis.
_WITH_AXIS = 13


def scales_channels(site: Site) -> bool:
    """Whether each of several output channels of a QLinearConv has a scale or a zero point of its own, as far as that is known."""
    weights = site.shape(site.input(3))
    return (not weights or weights[0] != 1) and (_is_long(site, 4) or _is_long(site, 5))


def convolves_constants(site: Site) -> bool:
    """Whether image and weights of a QLinearConv are known before anything runs."""
    return site.is_("QLinearConv") and site.is_known(site.input(0)) and site.is_known(site.input(3))


def quantized_products(site: Site) -> Iterator[ModelProto]:
    """Scale the operands and the bias, multiply, and quantize the result. Source: the operators' documentation.

    Weights whose scales are known only at run time are multiplied as they are, and the products scaled: the built-in OpenVINO provider
    ends the process over weights that are scaled at run time. So are constants by constants, whose zero points OpenVINO loses.
    """
    places = (1, 2, 4, 5, 6, 7)
    if not site.is_("QLinearConv", "QLinearMatMul") or any(site.rank(site.input(i)) not in (0, 1) for i in places):
        return
    if (
        weights := site.rank(site.input(3))
    ) is None:  # the built-in OpenVINO provider ends the process over a Conv by such weights
        return
    if adds_nothing(site):  # so do the products that it would be written with
        return
    if convolves_constants(site) or not (site.is_known(site.input(4)) and site.is_known(site.input(5))):
        if (scaled := _scaled_after(site)) is not None:
            yield scaled
        return
    body = Body(site, site.opsets if site.opset >= _WITH_AXIS else None)
    made = [_one(body, site, site.input(i)) for i in (6, 7)]
    if site.op_type == "QLinearConv":
        product = _convolved(body, site)
    else:
        if (rank := site.rank(site.input(0))) is None:
            return
        a, _ = _dequantized(body, site, 0, max(rank - 2, 0))
        b, _ = _dequantized(body, site, 3, weights - 1)
        product = body("MatMul", a, b)
    yield body.finish(body("QuantizeLinear", product, *made))


def _scaled_after(site: Site) -> ModelProto | None:
    """The product of the integers, then scaled: they are exact in float32, and so are their sums up to 2**24.

    Scaled by one number, as ONNX's evaluator and ONNX Runtime do: with a quantization after it ties would be rounded otherwise.
    """
    body, ranks = Body(site), [site.rank(site.input(i)) or 0 for i in (0, 3)]
    if min(ranks) < 2 or site.elem_type(site.input(1)) != TensorProto.FLOAT:
        return None
    rows, columns, channels = (-1, 1), (-1,), (1, -1, *[1] * (ranks[0] - 2))
    conv = site.op_type == "QLinearConv"
    x, w = (body.cast(site.input(i), TensorProto.FLOAT) for i in (0, 3))
    zeros = ((2, (1,)), (5, (-1, *[1] * (ranks[1] - 1)))) if conv else ((2, rows), (5, columns))
    zero, w_zero = (
        body("Reshape", body.cast(site.input(i), TensorProto.FLOAT), body.ints(*places)) for i, places in zeros
    )
    x = body("Sub", x, zero)
    if conv:
        total = body("Conv", x, body("Sub", w, w_zero), **site.attributes())
    else:  # OpenVINO takes what is subtracted from constant weights for a constant too
        total = body("Sub", body("MatMul", x, w), body("Mul", body("ReduceSum", x, body.ints(-1)), w_zero))
    if site.has_input(8):
        total = body("Add", total, body("Reshape", body.cast(site.input(8), TensorProto.FLOAT), body.ints(*channels)))
    scales = ((1, (1,)), (4, channels)) if conv else ((1, rows), (4, columns))
    scale = body("Mul", *(body("Reshape", site.input(i), body.ints(*places)) for i, places in scales))
    made, zero = (_one(body, site, site.input(i)) for i in (6, 7))
    product = body("Mul", total, body("Div", scale, made))
    return body.finish(body("QuantizeLinear", product, body.constant(np.ones((), np.float32)), zero))


def _convolved(body: Body, site: Site) -> str:
    x, x_scale = _dequantized(body, site, 0, None)
    w, w_scale = _dequantized(body, site, 3, 0)
    if not site.has_input(8):
        return str(body("Conv", x, w, **site.attributes()))
    bias = body("Mul", body.cast(site.input(8), TensorProto.FLOAT), body("Mul", x_scale, w_scale))
    return str(body("Conv", x, w, bias, **site.attributes()))


def _dequantized(body: Body, site: Site, place: int, axis: int | None) -> tuple[str, str]:
    """An operand times its scale, and the scale; those of rank 1 are for an axis."""
    x, scale, zero = (site.input(place + i) for i in range(3))
    if axis is None or not (_is_long(site, place + 1) or _is_long(site, place + 2)):
        scale, zero = _one(body, site, scale), _one(body, site, zero)
        return str(body("DequantizeLinear", x, scale, zero)), scale
    if not (_is_long(site, place + 1) and _is_long(site, place + 2)):
        count = body("Slice", body("Shape", x), body.ints(axis), body.ints(axis + 1))
        scale, zero = (str(body("Expand", name, count)) for name in (scale, zero))
    return str(body("DequantizeLinear", x, scale, zero, axis=axis)), scale


def _is_long(site: Site, place: int) -> bool:
    """Whether an input may have more than one element."""
    shape = site.shape(site.input(place))
    return shape is None or shape not in ([], [1])


def _one(body: Body, site: Site, name: str) -> str:
    """A scale or zero point as a scalar: of rank 1, it would be taken for those of an axis."""
    if site.rank(name) and (known := site.constant(name)) is not None and known.size == 1:
        return body.constant(known.reshape(()))
    return str(body("Reshape", name, body.constant(np.zeros(0, np.int64)))) if site.rank(name) else name
