# SPDX-License-Identifier: Apache-2.0
"""Rule: products that add up nothing, since the axis between the operands is known to be empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

#: By operator, each operand of a product with the axis that is added up; those of a Gemm depend on its attributes.
_SUMMED: Mapping[str, tuple[tuple[int, int], ...]] = {
    "MatMul": ((0, -1), (1, -2)),
    "MatMulInteger": ((0, -1), (1, -2)),
    "QLinearMatMul": ((0, -1), (3, -2)),
    "Conv": ((0, 1), (1, 1)),
    "ConvInteger": ((0, 1), (1, 1)),
    "QLinearConv": ((0, 1), (3, 1)),
    "ConvTranspose": ((0, 1), (1, 0)),
    "Gemm": (),
    "Einsum": (),
}
PRODUCTS = frozenset(_SUMMED)


def adds_nothing(site: Site) -> bool:
    """Whether the elements of a product are known to be sums of nothing. Any empty axis of an Einsum's operands counts."""
    if site.domain or site.op_type not in _SUMMED:
        return False
    if site.op_type == "Einsum":
        return any(0 in (site.shape(name) or ()) for name in site.node.input)
    return any(_size(site, place, axis) == 0 for place, axis in _summed(site))


def empty_products(site: Site) -> Iterator[ModelProto]:
    """Multiply sums over the empty axis, which are 0, so that the sizes of both operands count. Source: the products' documentation."""
    if not site.is_("MatMul", "MatMulInteger", "Gemm") or not adds_nothing(site):
        return
    operands = _summed(site)
    ranks = [site.rank(site.input(place)) or 0 for place, _ in operands]
    if min(ranks) < 2:
        return
    body = Body(site)
    read = [site.input(place) for place, _ in operands]
    if site.op_type == "MatMulInteger":
        read = [body.cast(name, TensorProto.INT32) for name in read]
    axes = [axis % rank for (_, axis), rank in zip(operands, ranks, strict=True)]  # ONNX Runtime 1.24 ignores -1 here
    sums = [body("ReduceSum", name, body.ints(axis), keepdims=1) for name, axis in zip(read, axes, strict=True)]
    if site.op_type == "Gemm":
        turned = [bool(site.attribute(name, 0)) for name in ("transA", "transB")]
        sums = [body("Transpose", of, perm=[1, 0]) if turn else of for of, turn in zip(sums, turned, strict=True)]
    made = body("Mul", *sums)
    beta = site.attribute("beta", 1.0)
    if site.op_type == "Gemm" and site.has_input(2) and beta:
        factor = body.constant(beta, site.elem_type(site.input(0)))
        made = body("Add", made, body("Mul", site.input(2), factor))
    yield body.finish(made)


def _summed(site: Site) -> tuple[tuple[int, int], ...]:
    if site.op_type != "Gemm":
        return _SUMMED[site.op_type]
    return (0, 0 if site.attribute("transA", 0) else 1), (1, 1 if site.attribute("transB", 0) else 0)


def _size(site: Site, place: int, axis: int) -> int | None:
    shape = site.shape(site.input(place)) or ()
    return shape[axis] if -len(shape) <= axis < len(shape) else None
