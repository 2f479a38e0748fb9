# SPDX-License-Identifier: Apache-2.0
"""Rule: QLinearConv and QLinearMatMul, written with Q/DQ nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

#: The first opset in which DequantizeLinear has an axis.
_WITH_AXIS = 13


def scales_channels(site: Site) -> bool:
    """Whether each output channel of a QLinearConv has a scale or a zero point of its own, as far as that is known."""
    return _is_long(site, 4) or _is_long(site, 5)


def quantized_products(site: Site) -> Iterator[ModelProto]:
    """Scale the operands and the bias, multiply, and quantize the result. Source: the operators' documentation.

    Weights of a QLinearConv whose scales are known only at run time are multiplied as they are, and the products scaled: the built-in
    OpenVINO provider ends the process over weights that are scaled at run time.
    """
    places = (1, 2, 4, 5, 6, 7)
    if not site.is_("QLinearConv", "QLinearMatMul") or any(site.rank(site.input(i)) not in (0, 1) for i in places):
        return
    if not (site.is_known(site.input(4)) and site.is_known(site.input(5))):
        if site.op_type == "QLinearConv" and site.rank(site.input(0)) is not None:
            yield _scaled_after(site)
        return
    body = Body(site, site.opsets if site.opset >= _WITH_AXIS else None)
    made = [_one(body, site, site.input(i)) for i in (6, 7)]
    if site.op_type == "QLinearConv":
        product = _convolved(body, site)
    else:
        ranks = [site.rank(site.input(i)) for i in (0, 3)]
        if ranks[0] is None or ranks[1] is None:
            return
        a, _ = _dequantized(body, site, 0, max(ranks[0] - 2, 0))
        b, _ = _dequantized(body, site, 3, ranks[1] - 1)
        product = body("MatMul", a, b)
    yield body.finish(body("QuantizeLinear", product, *made))


def _scaled_after(site: Site) -> ModelProto:
    """Integers below 2**24 and their sums up to there are exact in float32."""
    body, rank = Body(site), site.rank(site.input(0)) or 0
    channels = body.ints(1, -1, *[1] * (rank - 2))

    def whole(place: int, places: str) -> str:
        """An operand without its zero point, of which there may be one for each place of an axis."""
        zero = body("Reshape", body.cast(site.input(place + 2), TensorProto.FLOAT), places)
        return str(body("Sub", body.cast(site.input(place), TensorProto.FLOAT), zero))

    scale = body(
        "Mul", *(body("Reshape", site.input(i), places) for i, places in ((1, body.ints(1)), (4, body.ints(-1))))
    )
    total = body("Conv", whole(0, body.ints(1)), whole(3, body.ints(-1, *[1] * (rank - 1))), **site.attributes())
    if site.has_input(8):
        total = body("Add", total, body("Reshape", body.cast(site.input(8), TensorProto.FLOAT), channels))
    product = body("Mul", total, body("Reshape", scale, channels))
    return body.finish(body("QuantizeLinear", product, *(_one(body, site, site.input(i)) for i in (6, 7))))


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
    return str(body("Reshape", name, body.constant(np.zeros(0, np.int64)))) if site.rank(name) else name
