# SPDX-License-Identifier: Apache-2.0
"""Products, powers, running sums and scattered sums of constants, exactly, to see whether they are beyond a type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, helper

#: Of Python's integers.
Whole = np.ndarray[Any, np.dtype[np.object_]]

#: Beyond such exponents a number is not worked out: more than 64 bits are beyond any type.
_LARGEST_EXPONENT = 64
#: More of them, or of what they are at most, take too long.
_MOST_PRODUCTS = 2**18


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _gemm(node: NodeProto, a: Whole, b: Whole, c: Whole | None = None) -> Whole | None:
    given = _attributes(node)
    alpha, beta = given.get("alpha", 1.0), given.get("beta", 1.0)
    if not float(alpha).is_integer() or not float(beta).is_integer():  # nor are inf and NaN
        return None
    product: Whole = (a.T if given.get("transA") else a) @ (b.T if given.get("transB") else b) * int(alpha)
    return product if c is None else product + c * int(beta)


def _einsum(node: NodeProto, *operands: Whole) -> Whole | None:
    if math.prod(operand.size for operand in operands) > _MOST_PRODUCTS:
        return None
    made: Whole = np.einsum(_attributes(node)["equation"].decode(), *operands)
    return made


def _pow(node: NodeProto, base: Whole, exponent: Whole) -> Whole | None:
    """By whole numbers, which may be of a floating-point type."""
    if not all(float(e).is_integer() and e >= 0 for e in exponent.ravel()):
        return None
    factors = np.array([min(int(e), _LARGEST_EXPONENT) for e in exponent.ravel()], object)
    made: Whole = base ** factors.reshape(exponent.shape)
    return made


def _running(accumulate: Callable[..., Whole]) -> Callable[..., Whole]:
    def made(node: NodeProto, x: Whole, axis: Whole) -> Whole:
        """All of the sums or products from one end, that of everything too, which `exclusive` leaves out."""
        along = int(axis.item())
        found = accumulate(np.flip(x, along) if _attributes(node).get("reverse") else x, along)
        if _attributes(node).get("exclusive"):
            found = np.delete(found, -1, along)
        return found

    return made


def _scattered(node: NodeProto, data: Whole, indices: Whole, updates: Whole) -> Whole | None:
    given = _attributes(node)
    reduction = {b"add": np.add, b"mul": np.multiply}.get(given.get("reduction", b""))
    if reduction is None:
        return None
    made, places = data.copy(), indices.astype(np.int64)
    if node.op_type == "ScatterND":
        where = tuple(np.moveaxis(places, -1, 0))
    else:
        grid = list(np.indices(places.shape))
        grid[given.get("axis", 0)] = places
        where = tuple(grid)
    reduction.at(made, where, updates)
    return made


#: Each from its node and constants; None where it is not known.
EXACT: Mapping[str, Callable[..., Whole | None]] = {
    "CumProd": _running(np.multiply.accumulate),
    "CumSum": _running(np.add.accumulate),
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": lambda node, a, b: a @ b,
    "Pow": _pow,
    "ScatterElements": _scattered,
    "ScatterND": _scattered,
}
