# SPDX-License-Identifier: Apache-2.0
"""Single numbers and truths that nodes compute from constants alone, where there is one right result whoever computes it.

Exporters compute loops' and branches' conditions so. Bounds of values (`intervals`) are no proof: they leave out NaN, rounding and what sizes there
are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.intervals.values import LIMITS
from onnx_multi_backend.models.graph_walk import canonical, defaults_of
from onnx_multi_backend.models.tensors import is_whole

Number = bool | int | np.float32

_T = TensorProto
#: The types that are followed.
_KINDS = frozenset({_T.FLOAT, *LIMITS})

_ARITHMETIC: Mapping[str, Callable[[Number, Number], Number]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}
_COMPARISONS: Mapping[str, Callable[[Number, Number], bool]] = {
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
}
_LOGIC: Mapping[str, Callable[..., bool]] = {
    "And": operator.and_,
    "Not": operator.not_,
    "Or": operator.or_,
    "Xor": operator.xor,
}
#: Every integer up to here is a float64 too.
_EXACT = 2**53
#: What has another shape for the same number.
_MOVES = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze"})

#: A number and its element type.
_Known = tuple[int, Number]


def known_numbers(graph: GraphProto) -> dict[str, Number]:
    """The numbers of tensors of one element that are constants, or computed of such, by name. Only the graph's own nodes are followed."""
    defaults = defaults_of(graph)
    known: dict[str, _Known] = {}
    for tensor in graph.initializer:
        if tensor.name not in defaults and (found := _of_tensor(tensor)) is not None:
            known[tensor.name] = found
    for node in graph.node:
        if canonical(node.domain) or len(node.output) != 1:
            continue
        if node.op_type == "Constant":
            found = _of_constant(node)
        else:
            read = [known.get(name) for name in (node.input[:1] if node.op_type in _MOVES else node.input)]
            found = _made(node, [one for one in read if one is not None]) if read and None not in read else None
        if found is not None:
            known[node.output[0]] = found
    return {name: number for name, (_, number) in known.items()}


def _of_tensor(tensor: TensorProto) -> _Known | None:
    if tensor.data_type not in _KINDS or any(size != 1 for size in tensor.dims):
        return None
    if tensor.data_location == _T.EXTERNAL or not is_whole(tensor):
        return None
    number = numpy_helper.to_array(tensor).item()
    return _checked(tensor.data_type, np.float32(number) if tensor.data_type == _T.FLOAT else number)


def _of_constant(node: NodeProto) -> _Known | None:
    for attribute in node.attribute:
        if attribute.name == "value":
            return _of_tensor(attribute.t)
        if attribute.name == "value_int":
            return _T.INT64, attribute.i
        if attribute.name == "value_float":
            return _checked(_T.FLOAT, np.float32(attribute.f))
    return None


def _made(node: NodeProto, read: Sequence[_Known]) -> _Known | None:
    kinds, numbers = [kind for kind, _ in read], [number for _, number in read]
    name = node.op_type
    if name in _MOVES:
        return read[0]
    if name == "Cast":
        to = next((a.i for a in node.attribute if a.name == "to"), 0)
        return _cast(numbers[0], to)
    if len(set(kinds)) != 1:
        return None
    if name in _LOGIC and kinds[0] == _T.BOOL:
        return _T.BOOL, bool(_LOGIC[name](*numbers))
    if len(numbers) != 2:
        return None
    if name in _COMPARISONS:
        return _T.BOOL, bool(_COMPARISONS[name](*numbers))
    if name in _ARITHMETIC and kinds[0] != _T.BOOL:
        with np.errstate(all="ignore"):
            return _checked(kinds[0], _ARITHMETIC[name](*numbers))
    return None


def _cast(number: Number, to: int) -> _Known | None:
    if to == _T.FLOAT:  # beyond, an integer would be rounded twice
        return (to, np.float32(number)) if not isinstance(number, int) or abs(number) <= _EXACT else None
    if not np.isfinite(number):
        return None
    if to == _T.BOOL:
        return to, bool(number)
    return _checked(to, int(number)) if to in LIMITS else None


def _checked(kind: int, number: Number) -> _Known | None:
    """The number, unless it is an integer beyond its type: engines differ in what they make of that."""
    if kind == _T.FLOAT:
        return kind, number
    if kind == _T.BOOL:
        return kind, bool(number)
    low, high = LIMITS[kind]
    return (kind, number) if low <= number <= high else None
