# SPDX-License-Identifier: Apache-2.0
"""Nodes before a model and behind it, which its engine may fuse with it, move through it, or run in the same memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from backend_test.search.forms.case import Case, copied, defaults, is_array, opset, renamed, without_sizes

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
_WHOLE = (TensorProto.INT32, TensorProto.INT64)
#: Operators that undo themselves, by type.
_NEGATED = dict.fromkeys((*_FLOATS, *_WHOLE), "Neg") | {TensorProto.BOOL: "Not"}
#: The first opset in which these operators have all of their types, and axes as inputs.
_SINCE = 13
#: Beyond it, doubled, some type is infinite.
_LARGE = 3e4
_END = np.iinfo(np.int64).max


class Neighbour(NamedTuple):
    """What stands before an input or behind an output.

    Attributes
    ----------
    array : ndarray
        What is given or comes out instead.
    nodes : list of NodeProto
        From the one name to the other.
    constants : list of TensorProto
    sizes : callable or None
        How the list of sizes changes; None where only the rank is known.
    dtype : int or None
        The element type, where it is another.
    """

    array: np.ndarray
    nodes: list[NodeProto]
    constants: Sequence[TensorProto] = ()
    sizes: Callable[[list[Any]], list[Any]] | None = list
    dtype: int | None = None


#: Makes what stands between two names, for a tensor's array and element type; None where it does not fit.
Maker = Callable[[str, str, np.ndarray, int], Neighbour | None]


def behind(case: Case, make: Maker) -> Case | None:
    """The inputs come from other nodes."""
    if opset(case.model) < _SINCE:
        return None
    made, feeds, given = copied(case.model), {}, defaults(case.model)
    before: list[NodeProto] = []
    for value in made.graph.input:
        array = case.feeds.get(value.name)
        neighbour = None
        if value.name not in given and value.name in case.feeds and is_array(array):
            neighbour = make(f"{value.name}_given", value.name, array, value.type.tensor_type.elem_type)
        if neighbour is None:
            if value.name in case.feeds:
                feeds[value.name] = array
            continue
        value.name = f"{value.name}_given"
        feeds[value.name] = neighbour.array
        _retyped(value, neighbour)
        before += neighbour.nodes
        made.graph.initializer.extend(neighbour.constants)
    nodes = [*before, *made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return Case(made, feeds, case.results) if before else None


def before(case: Case, make: Maker) -> Case | None:
    """The outputs go to other nodes."""
    if opset(case.model) < _SINCE or case.results is None:
        return None
    made, results, changed = copied(case.model), [], False
    for value, array in zip(made.graph.output, case.results, strict=True):
        neighbour = None
        if is_array(array) and value.type.HasField("tensor_type"):
            neighbour = make(value.name, f"{value.name}_made", array, value.type.tensor_type.elem_type)
        results.append(array if neighbour is None else neighbour.array)
        if neighbour is not None:
            changed = True
            made.graph.node.extend(neighbour.nodes)
            made.graph.initializer.extend(neighbour.constants)
            value.name = f"{value.name}_made"
            _retyped(value, neighbour)
    return Case(made, case.feeds, results) if changed else None


def beside(case: Case) -> Case | None:
    """Other nodes read its inputs and outputs too."""
    if opset(case.model) < _SINCE or case.results is None:
        return None
    made, results = copied(case.model), list(case.results)
    given = [(v, case.feeds[v.name]) for v in made.graph.input if v.name in case.feeds]
    for value, array in (*given, *zip(list(made.graph.output), case.results, strict=True)):
        name = f"{value.name}_too"
        neighbour = negated_once(value.name, name, array, value.type.tensor_type.elem_type) if is_array(array) else None
        if neighbour is not None and all(v.name != name for v in made.graph.output):
            made.graph.node.extend(neighbour.nodes)
            made.graph.output.append(renamed(value, name))
            results.append(neighbour.array)
    return Case(made, case.feeds, results) if len(results) > len(case.results) else None


def _retyped(value: ValueInfoProto, neighbour: Neighbour) -> None:
    kind = value.type.tensor_type
    if neighbour.dtype is not None:
        kind.elem_type = neighbour.dtype
    if neighbour.sizes is None:
        without_sizes(value, neighbour.array.ndim)
    elif kind.HasField("shape"):
        dims = neighbour.sizes(list(kind.shape.dim))
        made = [dim if isinstance(dim, int) else dim.SerializeToString() for dim in dims]
        del kind.shape.dim[:]
        for dim in made:
            if isinstance(dim, int):
                kind.shape.dim.add().dim_value = dim
            else:
                kind.shape.dim.add().ParseFromString(dim)


def _constant(name: str, array: np.ndarray) -> TensorProto:
    return numpy_helper.from_array(array, name)


# What stands there.


def negated(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Negated twice."""
    if dtype not in _NEGATED:
        return None
    operator, between = _NEGATED[dtype], f"{made}_between"
    return Neighbour(
        array, [helper.make_node(operator, [name], [between]), helper.make_node(operator, [between], [made])]
    )


def negated_once(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    if dtype not in _NEGATED:
        return None
    with np.errstate(all="ignore"):
        return Neighbour(~array if array.dtype == bool else -array, [helper.make_node(_NEGATED[dtype], [name], [made])])


def transposed(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Given with its last axis first."""
    last = array.ndim - 1
    return _moved(name, made, array, [last, *range(last)], [*range(1, array.ndim), 0])


def transposed_after(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Its first axis comes last."""
    order = [*range(1, array.ndim), 0]
    return _moved(name, made, array, order, order)


def _moved(name: str, made: str, array: np.ndarray, order: list[int], perm: list[int]) -> Neighbour | None:
    if array.ndim < 2:
        return None
    node = helper.make_node("Transpose", [name], [made], perm=perm)
    return Neighbour(array.transpose(order), [node], sizes=lambda dims: [dims[i] for i in order])


def squeezed(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Given with one axis more."""
    node = helper.make_node("Squeeze", [name, f"{made}_axes"], [made])
    return Neighbour(array[None], [node], [_constant(f"{made}_axes", np.array([0], np.int64))], lambda dims: [1, *dims])


def flattened(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """A list of all elements comes out."""
    node = helper.make_node("Reshape", [name, f"{made}_shape"], [made])
    return Neighbour(array.reshape(-1), [node], [_constant(f"{made}_shape", np.array([-1], np.int64))], None)


def in_pieces(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Sliced out of a longer one."""
    if array.ndim < 1 or not array.shape[0]:
        return None
    bounds = [_constant(f"{made}_start", np.array([1], np.int64)), _constant(f"{made}_end", np.array([_END], np.int64))]
    node = helper.make_node("Slice", [name, *(t.name for t in bounds)], [made])
    return Neighbour(np.concatenate([array[:1], array]), [node], bounds, None)


def joined(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Joined with itself."""
    if array.ndim < 1:
        return None
    node = helper.make_node("Concat", [name, name], [made], axis=0)
    return Neighbour(np.concatenate([array, array]), [node], sizes=None)


def cast(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Given in a wider type."""
    wider = TensorProto.INT64 if array.dtype.kind in "iub" else TensorProto.DOUBLE if dtype in _FLOATS else dtype
    if wider == dtype or dtype == TensorProto.UINT64:
        return None
    node = helper.make_node("Cast", [name], [made], to=dtype)
    return Neighbour(array.astype(helper.tensor_dtype_to_np_dtype(wider)), [node], dtype=wider)


def cast_after(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Integers and truth values come out as float32."""
    if array.dtype.kind not in "iub":
        return None
    node = helper.make_node("Cast", [name], [made], to=TensorProto.FLOAT)
    return Neighbour(array.astype(np.float32), [node], dtype=TensorProto.FLOAT)


def scaled(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Given halved, or less one."""
    if dtype in _FLOATS:
        half, two = array / array.dtype.type(2), array.dtype.type(2)
        return _with("Mul", 2, name, made, half, array) if np.array_equal(half * two, array, equal_nan=True) else None
    if dtype in _WHOLE and array.min(initial=0) > np.iinfo(array.dtype).min:
        return _with("Add", 1, name, made, array - array.dtype.type(1), array)
    return None


def scaled_after(name: str, made: str, array: np.ndarray, dtype: int) -> Neighbour | None:
    """Doubled, or one more."""
    if dtype in _FLOATS:
        with np.errstate(all="ignore"):
            fits = not (np.abs(array[np.isfinite(array)]) > _LARGE).any()
            return _with("Mul", 2, name, made, array * array.dtype.type(2), array) if fits else None
    if dtype in _WHOLE and array.max(initial=0) < np.iinfo(array.dtype).max:
        return _with("Add", 1, name, made, array + array.dtype.type(1), array)
    return None


def _with(operator: str, number: int, name: str, made: str, instead: np.ndarray, array: np.ndarray) -> Neighbour:
    constant = _constant(f"{made}_number", np.full([1] * array.ndim, number, array.dtype))
    return Neighbour(instead, [helper.make_node(operator, [name, constant.name], [made])], [constant])
