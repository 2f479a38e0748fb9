# SPDX-License-Identifier: Apache-2.0
"""Rule: products that add up nothing, since the axis between the operands is known to be empty."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.operators.products import adds_nothing, summed
from onnx_multi_backend.adapt.site import Body, Site


def empty_products(site: Site) -> Iterator[ModelProto]:
    """Multiply sums over the empty axis, which are 0, so that the sizes of both operands count. Source: the products' documentation."""
    if not site.is_("MatMul", "MatMulInteger", "Gemm") or not adds_nothing(site):
        return
    operands = summed(site)
    ranks = [site.rank(site.input(place)) or 0 for place, _ in operands]
    if min(ranks) < 1:
        return
    body = Body(site)
    read = [site.input(place) for place, _ in operands]
    if site.op_type == "MatMulInteger":
        read = [body.cast(name, TensorProto.INT32) for name in read]
    axes = [axis % rank for (_, axis), rank in zip(operands, ranks, strict=True)]  # ONNX Runtime 1.24 ignores -1 here
    keep = int(min(ranks) > 1)  # a vector has no axis in the result
    sums = [body("ReduceSum", name, body.ints(axis), keepdims=keep) for name, axis in zip(read, axes, strict=True)]
    if site.op_type == "Gemm":
        turned = [bool(site.attribute(name, 0)) for name in ("transA", "transB")]
        sums = [body("Transpose", of, perm=[1, 0]) if turn else of for of, turn in zip(sums, turned, strict=True)]
    made = body("Mul", *sums)
    beta = site.attribute("beta", 1.0)
    if site.op_type == "Gemm" and site.has_input(2) and beta:
        factor = body.constant(beta, site.elem_type(site.input(0)))
        made = body("Add", made, body("Mul", site.input(2), factor))
    yield body.finish(made)
