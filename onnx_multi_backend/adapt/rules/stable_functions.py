# SPDX-License-Identifier: Apache-2.0
"""Rule: functions whose body in ONNX's schema overflows where the function itself does not."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.site import Body, Site


def stable_functions(site: Site) -> Iterator[ModelProto]:
    """Write Softplus and ReduceLogSumExp with exponentials of numbers that are not above zero.

    log(1 + exp(x)) is max(x, 0) + log(1 + exp(-|x|)); the schema's exp(x) is infinite for x above 11 in float16, above 88 in
    float32. ReduceLogSumExp takes the largest number out of the sum.
    """
    kind = site.elem_type(site.input(0))
    if site.is_("Softplus") and kind:
        body, x = Body(site), site.input(0)
        zero, one = body.constant(0, kind), body.constant(1, kind)
        rest = body("Log", body("Add", one, body("Exp", body("Neg", body("Abs", x)))))
        yield body.finish(body("Add", body("Where", body("Less", x, zero), zero, x), rest))
    elif site.is_("ReduceLogSumExp") and kind and site.opset >= 18 and not site.attribute("noop_with_empty_axes", 0):
        body, x, axes = Body(site), site.input(0), [site.input(1)] if site.has_input(1) else []
        largest = body("ReduceMax", x, *axes, keepdims=1)
        bounded = body("Equal", body("Sub", largest, largest), body.constant(0, kind))  # neither infinite nor NaN
        shift = body("Where", bounded, largest, body.constant(0, kind))
        total = body("Log", body("ReduceSum", body("Exp", body("Sub", x, shift)), *axes, keepdims=1))
        result = body("Add", total, shift)
        if not site.attribute("keepdims", 1):
            own = NodeProto(op_type="ReduceSum", input=[result, *axes], output=["sum"])  # of one number along each axis
            own.attribute.extend(a for a in site.node.attribute if a.name == "keepdims")
            result = body.add(own)[0]
        yield body.finish(result)
