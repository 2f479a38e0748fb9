# SPDX-License-Identifier: Apache-2.0
"""A node as its values are told, and what its operator's schema says of the types that it makes."""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping
from typing import NamedTuple

import onnx
from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.values import LIMITS, Value, bare, of_type

_T = TensorProto

Values = MutableMapping[str, Value]
#: The number of elements that a node sums, where it is known.
Counts = Callable[[NodeProto], "int | None"]


class Made(NamedTuple):
    """What a node makes.

    Attributes
    ----------
    values : list of Value
        One an output.
    whole : Value or None
        The unlimited result of its arithmetic.
    """

    values: list[Value]
    whole: Value | None = None


class Operation(NamedTuple):
    """A node of ONNX's own domain as the rules look at it.

    Attributes
    ----------
    node : onnx.NodeProto
    kind : str
    read : list of Value
        One an input, of those too that are left out.
    operands : list of Value
        Of the inputs that are given.
    bodies : list of (GraphProto, Values)
        The graphs in its attributes.
    summed : callable
    """

    node: NodeProto
    kind: str
    read: list[Value]
    operands: list[Value]
    bodies: list[tuple[GraphProto, Values]]
    summed: Counts

    @property
    def outputs(self) -> int:
        """How many it has."""
        return len(self.node.output)


@functools.cache
def unknown(elem_type: int) -> Value:
    """What is computed in the model: the type's range, but for 64 bits, of which no model uses all."""
    return bare(elem_type) if elem_type in (_T.INT64, _T.UINT64, _T.UINT32) else of_type(elem_type)


class _Signature(NamedTuple):
    """What an operator's schema says.

    Attributes
    ----------
    outputs : tuple of (int, int)
        For each output its element type, or else the input whose type it shares (-1: neither).
    typed : bool
        Whether an attribute may tell the type.
    """

    outputs: tuple[tuple[int, int], ...]
    typed: bool


@functools.cache
def _signature(op_type: str) -> _Signature:
    try:
        schema = onnx.defs.get_schema(op_type)
    except onnx.defs.SchemaError:
        return _Signature((), True)
    inputs = [i.type_str for i in schema.inputs]
    only = {t.type_param_str: t.allowed_type_strs[0] for t in schema.type_constraints if len(t.allowed_type_strs) == 1}
    found = []
    for output in schema.outputs:
        name = output.type_str
        found.append((_plain(only.get(name, name)), inputs.index(name) if name in inputs else -1))
    return _Signature(tuple(found), not {"dtype", "output_dtype"}.isdisjoint(schema.attributes))


def _plain(type_str: str) -> int:
    if not type_str.startswith("tensor("):
        return 0
    name = type_str.removeprefix("tensor(").removesuffix(")").upper()
    return int(_T.DataType.Value(name)) if name in _T.DataType.keys() else 0  # noqa: SIM118  # an enum has keys only


def by_schema(done: Operation) -> list[Value]:
    """What a node makes, as far as its operator's schema tells."""
    told, typed = _signature(done.kind)
    given = next((a.i for a in done.node.attribute if a.name in ("dtype", "output_dtype") and a.i), 0) if typed else 0
    read = done.read
    sources: frozenset[str] | None = None
    made = []
    for i in range(done.outputs):
        elem_type, shared = told[min(i, len(told) - 1)] if told else (0, -1)
        if not elem_type and 0 <= shared < len(read):
            elem_type = read[shared].elem_type
        value = unknown(given or elem_type)
        if elem_type in LIMITS and elem_type != _T.BOOL:
            if sources is None:
                sources = frozenset().union(*(v.sources for v in read))
            if sources:
                value = value._replace(sources=sources)
        made.append(value)
    return made
