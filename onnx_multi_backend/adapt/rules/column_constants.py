# SPDX-License-Identifier: Apache-2.0
"""Rule: a value for each column of a product that has two columns, or where only a run tells how many it has."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
#: By operator, the places that the constant may have.
PLACES = {
    "Add": (0, 1),
    "BatchNormalization": (1,),
    "Div": (1,),
    "Gemm": (2,),
    "Mul": (0, 1),
    "PRelu": (1,),
    "Sub": (0, 1),
}


def columns(site: Site) -> tuple[int, int] | None:
    """The place of an operand with a value for each column, and how many it has, where the other may have two columns."""
    if site.domain or site.elem_type(site.input(0)) not in _FLOATS or GUARDED in site.node.name:
        return None
    for place in PLACES.get(site.op_type, ()):
        sizes = site.shape(site.input(place))
        if not sizes or None in sizes or not 1 < math.prod(size or 0 for size in sizes) == sizes[-1]:
            continue
        other = site.shape(site.input(1 - place if place < 2 else 1))
        last = 0 if site.op_type == "Gemm" and site.attribute("transB", 0) else -1
        if site.op_type == "BatchNormalization" and (other is None or len(other) != 2 or len(site.node.output) > 1):
            continue
        # Two that are known are left out by PRelu, and behind a Cast, which may stand before any other.
        two = other and other[last] == 2 and len(other) > 1 and site.op_type != "Gemm"
        if other and (other[last] is None or two) and (site.op_type == "Gemm" or len(sizes) <= len(other)):
            return place, sizes[-1]
    return None


def column_constants(site: Site) -> Iterator[ModelProto]:
    """Compute with them behind another axis, so that no kernel takes them into the product."""
    found = columns(site)
    if found is None:
        return
    body = Body(site)
    operands, axis = list(site.node.input), body.ints(0)
    operator, attributes = site.op_type, site.attributes()
    if site.op_type == "Gemm":
        product = body("Gemm", *operands[:2], **site.attributes("beta", "broadcast"))
        beta, constant = site.attribute("beta", 1.0), site.input(2)
        if beta != 1:
            constant = body("Mul", constant, body.constant(beta, site.elem_type(constant)))
        operands, place, operator, attributes = [product, constant], 1, "Add", {}
    else:
        place = found[0]
        if operator == "BatchNormalization":  # its channels are axis 1
            axis = body.ints(2)
    operands[1 - place] = body("Unsqueeze", operands[1 - place], axis)
    made = body(operator, *operands, name=GUARDED, **attributes)
    yield body.finish(body("Squeeze", made, axis))
