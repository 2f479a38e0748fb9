# SPDX-License-Identifier: Apache-2.0
"""Operators that multiply and add up: along which axes, and whether there is nothing to add."""

from __future__ import annotations

from collections.abc import Mapping

from onnx_multi_backend.adapt.site import Site

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
    return any(_size(site, place, axis) == 0 for place, axis in summed(site))


def makes_nothing(site: Site) -> bool:
    """Whether the result of a product of matrices is known to have no elements, whatever is added up."""
    if not site.is_("MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"):
        return False
    for place, axis in summed(site):
        kept = list(site.shape(site.input(place)) or ())
        if kept:
            del kept[max(axis, -len(kept))]
        if 0 in kept:
            return True
    return False


def summed(site: Site) -> tuple[tuple[int, int], ...]:
    """The operands of a product other than Einsum, each with the axis that is added up."""
    if site.op_type != "Gemm":
        return _SUMMED[site.op_type]
    return (0, 0 if site.attribute("transA", 0) else 1), (1, 1 if site.attribute("transB", 0) else 0)


def _size(site: Site, place: int, axis: int) -> int | None:
    """The size of an axis; a vector has one, whatever is asked for."""
    shape = site.shape(site.input(place)) or ()
    axis = max(axis, -len(shape))
    return shape[axis] if axis < len(shape) else None
