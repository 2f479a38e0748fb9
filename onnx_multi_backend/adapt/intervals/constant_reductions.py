# SPDX-License-Identifier: Apache-2.0
"""Reductions, Casts and arithmetic of constants whose exact results, or sums of squares on the way there, are beyond int32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import SMALL_BYTES
from onnx_multi_backend.adapt.intervals.constant_products import EXACT
from onnx_multi_backend.adapt.intervals.values import LIMITS, Value
from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import WIDE, constant_tensor, is_whole

_T = TensorProto
_Array = np.ndarray[Any, Any]

#: What has to stay within int32, of Python's integers.
REDUCED: Mapping[str, Callable[[_Array, tuple[int, ...]], _Array]] = {
    "ReduceL1": lambda x, axes: abs(x).sum(axes),
    "ReduceL2": lambda x, axes: (x * x).sum(axes),
    "ReduceProd": lambda x, axes: x.prod(axes),
    "ReduceSum": lambda x, axes: x.sum(axes),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes),
}
#: A shift by as many bits leaves nothing of any type.
_WIDEST = 64
#: What has to stay within int32 by element, and where the type is unsigned must not be below 0, which wraps around.
_COMPUTED: Mapping[str, Callable[..., _Array | None]] = {
    **EXACT,
    "Add": lambda node, x, y: x + y,
    "BitShift": lambda node, x, amounts: x << np.minimum(amounts, _WIDEST),  # to the left
    "BitwiseNot": lambda node, x: -1 - x,
    "Mul": lambda node, x, y: x * y,
    "Sub": lambda node, x, y: x - y,
}
_WIDE = frozenset({_T.INT64, _T.UINT64})
_UNSIGNED = (_T.UINT32, _T.UINT64)
_FLOATS = frozenset({_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16})
_REDUCED_TYPES = {
    "ReduceL2": _WIDE | {_T.INT32},
    **dict.fromkeys(("ReduceProd", "ReduceSumSquare"), _WIDE | {_T.UINT32}),
}
_CASTS = frozenset({"Cast", "CastLike"})


def constants_of(graph: GraphProto) -> dict[str, TensorProto]:
    """The small constants of a graph; a default counts, since OpenVINO makes a constant of it."""
    made = {
        n.output[0]: tensor
        for n in graph.node
        if n.op_type == "Constant" and (tensor := constant_tensor(n)) is not None
    }
    stored = {t.name: t for t in graph.initializer}
    return {
        name: tensor for name, tensor in (made | stored).items() if tensor.ByteSize() < SMALL_BYTES and is_whole(tensor)
    }


def may_leave_int32(node: NodeProto, operands: list[Value], made: Made) -> bool:
    """Whether `leaves_int32` need be asked, of a node and what is known of what it reads and makes."""
    if not operands or operands[0].sources:
        return False
    if node.op_type in _CASTS and operands[0].elem_type in _FLOATS:
        known = operands[0].low is not None and not operands[0].in_int32
        return known and made.values[0].elem_type in WIDE
    if operands[0].elem_type not in LIMITS:
        return False
    if node.op_type == "Pow":  # nothing is known of floating-point numbers
        operands = operands[:1]
    if node.op_type in _COMPUTED:
        return operands[0].elem_type in _WIDE | {_T.UINT32} and all(
            value.low is not None and not value.sources and not value.assumed for value in operands
        )
    return node.op_type in REDUCED or (node.op_type in _CASTS and made.values[0].elem_type in _UNSIGNED)


def leaves_int32(node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    """Whether a node reduces a constant of 64 bits, or squares one of int32, to what int32 does not hold.

    Sums and products of int32 wrap around in ONNX too. A constant in floating point may be cast to what int32 does not hold. A negative constant that
    is cast to an unsigned type is large, and so is a negative difference of unsigned constants, or the complement of one: the engine computes them
    ahead, and limits them to int32, as sums and products.
    """
    if node.op_type in _CASTS:
        return _becomes_large(node, constants)
    if node.op_type in _COMPUTED:
        return not _shifts_right(node) and _is_limited(node, constants)
    reduced = REDUCED.get(node.op_type)
    data = constants.get(node.input[0]) if reduced and node.input and not canonical(node.domain) else None
    if reduced is None or data is None:
        return False
    if data.data_type not in _REDUCED_TYPES.get(node.op_type, _WIDE):
        return False
    array = numpy_helper.to_array(data)
    axes = _axes(node, constants, array.ndim)
    if axes is None:  # each element counts by itself, whatever it is added to
        axes = () if node.op_type not in ("ReduceProd", "ReduceSum") else None
    elif node.op_type == "ReduceL2" and reduces_nothing(node, axes_given(node, constants)):  # the absolute values
        return False
    if axes is None or not array.size:
        return False
    whole = array.astype(object).reshape(array.shape or 1)
    found = np.asarray(reduced(whole, axes))  # of a scalar, numpy makes no array
    low, high = LIMITS[_T.INT32]
    if data.data_type == _T.UINT32:  # squares and products wrap around before they are limited
        modulus = LIMITS[_T.UINT32][1] + 1
        squares = whole * whole if node.op_type == "ReduceSumSquare" else found
        return bool(np.any(found % modulus > high) or np.any(squares % modulus > high))
    return bool((found < low).any() or (found > high).any())


def _becomes_large(node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    data = constants.get(node.input[0]) if node.input and not canonical(node.domain) else None
    to = next((a.i for a in node.attribute if a.name == "to"), None)
    if data is None or (to is not None and to not in WIDE):
        return False
    if data.data_type in _FLOATS:
        numbers = numpy_helper.to_array(data).astype(np.float64)
        low, high = LIMITS[_T.INT32]
        return bool((np.isfinite(numbers) & ((numbers < low) | (numbers >= high + 1))).any())
    if data.data_type not in LIMITS or (to is not None and to not in _UNSIGNED):
        return False
    return bool((numpy_helper.to_array(data).astype(object) < 0).any())


def _shifts_right(node: NodeProto) -> bool:
    return node.op_type == "BitShift" and any(a.name == "direction" and a.s == b"RIGHT" for a in node.attribute)


def _is_limited(node: NodeProto, constants: Mapping[str, TensorProto]) -> bool:
    data = [constants.get(name) for name in node.input if name]
    known = [numpy_helper.to_array(tensor).astype(object) for tensor in data if tensor is not None]
    if len(known) < len(data) or canonical(node.domain):
        return False
    try:
        made = _COMPUTED[node.op_type](node, *known)
    except (IndexError, TypeError, ValueError):  # shapes, places or axes that do not fit: the engine says so
        return False
    if made is None:
        return False
    found = np.asarray(made, object)  # of scalars, numpy makes no array
    low, high = LIMITS[_T.INT32]
    if data[0] is not None and data[0].data_type in _UNSIGNED:
        low, modulus = 0, LIMITS[data[0].data_type][1] + 1
        if node.op_type not in EXACT:  # OpenVINO adds products up in other types
            found = np.where(found < 0, found, found % modulus)
    return bool((found < low).any() or (found > high).any())


def axes_given(node: NodeProto, constants: Mapping[str, TensorProto]) -> tuple[int, ...] | None:
    """The axes as a node names them, none for all; None where they are not known."""
    attributes = {a.name: a for a in node.attribute}
    if len(node.input) > 1 and node.input[1]:
        known = constants.get(node.input[1])
        return None if known is None else tuple(numpy_helper.to_array(known).ravel().tolist())
    return tuple(attributes["axes"].ints) if "axes" in attributes else ()


def reduces_nothing(node: NodeProto, axes: tuple[int, ...] | None) -> bool:
    """Whether no axes are given, and none are meant."""
    return axes == () and any(a.name == "noop_with_empty_axes" and a.i for a in node.attribute)


def _axes(node: NodeProto, constants: Mapping[str, TensorProto], rank: int) -> tuple[int, ...] | None:
    """The axes, from 0; None where they are not known."""
    given = axes_given(node, constants)
    if given == () and not reduces_nothing(node, given):
        return tuple(range(rank))
    if given is None or any(not -rank <= axis < rank for axis in given):  # the checker reports it
        return None
    return tuple(sorted({axis % rank for axis in given}))
