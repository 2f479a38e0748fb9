# SPDX-License-Identifier: Apache-2.0
"""Rules: operators of ONNX Runtime's domain, as its optimizer for transformers writes them, that engines have in some forms only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.operators.contrib import DOMAIN, IN_BYTES
from onnx_multi_backend.adapt.site import Body, Site

#: ONNX Runtime's default. Source: its ``skip_layer_norm_helper`` and ContribOperators.md.
_EPSILON = 1e-12


def quick_gelu(site: Site) -> Iterator[ModelProto]:
    """X * Sigmoid(alpha * x). Source: ContribOperators.md."""
    x = site.input(0)
    if site.domain != DOMAIN or site.op_type != "QuickGelu" or not site.elem_type(x):
        return
    body = Body(site)
    alpha = body.constant(np.array(site.attribute("alpha", 1.702)), site.elem_type(x))
    yield body.finish(body("Mul", x, body("Sigmoid", body("Mul", x, alpha))))


def skip_layer_normalization(site: Site) -> Iterator[ModelProto]:
    """The sum of both inputs and the bias, normalized; that sum is the fourth output. Source: ContribOperators.md."""
    if site.domain != DOMAIN or site.op_type != "SkipLayerNormalization" or site.has_output(1) or site.has_output(2):
        return
    body = Body(site)
    total = body("Add", site.input(0), site.input(1))
    if site.has_input(4):
        total = body("Add", total, site.input(4))
    scales = [site.input(2), *([site.input(3)] if site.has_input(3) else [])]
    made = body("LayerNormalization", total, *scales, axis=-1, epsilon=site.attribute("epsilon", _EPSILON))
    yield body.finish(made, "", "", total)


def contrib_pad(site: Site) -> Iterator[ModelProto]:
    """ONNX's Pad. Source: ContribOperators.md, where it is that of opset 13, whose pads may have an axis of 1 before theirs."""
    if site.domain == DOMAIN and site.op_type == "Pad" and len(site.node.input) > 1:
        body = Body(site)
        x, pads, *value = site.node.input
        known = site.constant(pads)
        if known is not None:
            pads = body.ints(*map(int, known.reshape(-1)))
        elif site.rank(pads) != 1:
            pads = body("Reshape", pads, body.ints(-1))
        yield body.finish(body("Pad", x, pads, *value, mode=site.attribute("mode", "constant")))


def dynamic_quantize_matmul(site: Site) -> Iterator[ModelProto]:
    """Quantize the first operand, and multiply what both mean. Source: ContribOperators.md."""
    if site.domain != DOMAIN or site.op_type != "DynamicQuantizeMatMul":
        return
    body = Body(site)
    quantized = body("DynamicQuantizeLinear", site.input(0), outputs=3)
    scales = [site.input(place) for place in (2, 3) if site.has_input(place)]
    weights = body("DequantizeLinear", site.input(1), *scales, axis=-1)
    made = body("MatMul", body("DequantizeLinear", *quantized), weights)
    yield body.finish(body("Add", made, site.input(4)) if site.has_input(4) else made)


def matmul_integer_to_float(site: Site) -> Iterator[ModelProto]:
    """Multiply what both operands mean. Source: ContribOperators.md."""
    if site.domain != DOMAIN or site.op_type != "MatMulIntegerToFloat" or not all(map(site.has_input, range(4))):
        return
    body = Body(site)
    operands = []
    for x, scale, zero in ((0, 2, 4), (1, 3, 5)):
        read = [site.input(place) for place in (x, scale, zero) if site.has_input(place)]
        operands.append(body("DequantizeLinear", *read, axis=-1))
    made = body("MatMul", *operands)
    yield body.finish(body("Add", made, site.input(6)) if site.has_input(6) else made)


def qlinear_where(site: Site) -> Iterator[ModelProto]:
    """Choose among what both operands mean. Source: ContribOperators.md."""
    if site.domain != DOMAIN or site.op_type != "QLinearWhere" or not all(map(site.has_input, range(9))):
        return
    body = Body(site)
    condition, *operands = site.node.input[:7]
    x, y = (body("DequantizeLinear", *operands[i : i + 3]) for i in (0, 3))
    yield body.finish(body("QuantizeLinear", body("Where", condition, x, y), *site.node.input[7:]))


def matmul_of_bits(site: Site) -> Iterator[ModelProto]:
    """Multiply in float32, which any accuracy level allows. Source: ContribOperators.md."""
    if site.domain == DOMAIN and site.op_type == "MatMulNBits" and site.attribute("accuracy_level", 0) == IN_BYTES:
        body = Body(site)
        made = body("MatMulNBits", *site.node.input, domain=DOMAIN, **site.attributes("accuracy_level"))
        yield body.finish(made)
