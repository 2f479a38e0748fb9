# SPDX-License-Identifier: Apache-2.0
"""Which values of a graph hold floating-point numbers, as far as the operators alone decide it: nothing is inferred."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from onnx import GraphProto, NodeProto, TensorProto, defs

from onnx_multi_backend.models.graph_walk import canonical, may_hold_graphs, subgraphs

_FLOATS = frozenset(f"tensor({name})" for name in ("float", "float16", "bfloat16", "double"))
_FLOAT_TYPES = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})


#: Operators whose type an attribute tells, and what it is without one.
_CONSTANTS = {"Constant": False, "ConstantOfShape": True}


class Made(NamedTuple):
    """What an operator's first output is: floating-point numbers, or of the type that one of these inputs has."""

    floats: bool
    like: tuple[int, ...]


def float_names(graph: GraphProto) -> set[str]:
    """Names of values that hold floating-point numbers, of the graph and its subgraphs. Others may too.

    Where branches have a name in common, all that it stands for hold floating-point numbers.
    """
    floats: set[str] = set()
    others: set[str] = set()
    _look(graph, (), floats, others)
    return floats - others


class FloatSearch:
    """Tells the same of single values of a graph without subgraphs, of a model without local functions; far fewer nodes are looked at.

    Parameters
    ----------
    graph : onnx.GraphProto
    """

    def __init__(self, graph: GraphProto) -> None:
        self._makers = {name: node for node in graph.node for name in node.output[:1]}
        self._kinds = {value.name: value.type.tensor_type.elem_type for value in graph.input}
        self._kinds.update((tensor.name, tensor.data_type) for tensor in graph.initializer)
        self._known: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        """Whether a value holds floating-point numbers."""
        waiting, readers = [name], {name: ""}
        while waiting:
            each = waiting.pop()
            if self._is_float(each):
                while each:  # so are those that have its type
                    self._known[each], each = True, readers[each]
                return True
            for like in () if each in self._known else self._like(each):
                if like not in readers:
                    readers[like] = each
                    waiting.append(like)
        self._known.update(dict.fromkeys(readers, False))
        return False

    def _is_float(self, name: str) -> bool:
        if name in self._known:
            return self._known[name]
        node = self._makers.get(name)
        return self._kinds.get(name) in _FLOAT_TYPES if node is None else _makes_floats(node, node.op_type, ())

    def _like(self, name: str) -> list[str]:
        """What a value has the type of."""
        node = self._makers.get(name)
        if node is None or canonical(node.domain):
            return []
        read = node.input
        return [read[i] for i in first_output(node.op_type).like if i < len(read) and read[i]]


def _look(graph: GraphProto, outer: tuple[set[str], ...], floats: set[str], others: set[str]) -> list[bool]:
    """Sort what a graph gives names to into floating-point numbers and others, and return so of the graph's outputs.

    Parameters
    ----------
    outer : tuple of set of str
        The floating-point numbers of the graphs around it.
    """
    given = {v.name for v in graph.input if v.type.tensor_type.elem_type in _FLOAT_TYPES}
    given.update(t.name for t in graph.initializer if t.data_type in _FLOAT_TYPES)
    others.update(v.name for v in graph.input if v.name not in given)
    others.update(t.name for t in graph.initializer if t.name not in given)
    scopes = (given, *outer)
    for node in graph.node:
        op_type = node.op_type
        bodies = [_look(body, scopes, floats, others) for body in subgraphs(node)] if may_hold_graphs(op_type) else ()
        if op_type == "If" and bodies:
            made = [all(told) for told in zip(*bodies, strict=False)]
        else:
            made = [_makes_floats(node, op_type, scopes)]
        for place, name in enumerate(node.output):
            (given if place < len(made) and made[place] else others).add(name)
    floats |= given
    return [any(value.name in names for names in scopes) for value in graph.output]


def _makes_floats(node: NodeProto, op_type: str, scopes: Sequence[set[str]]) -> bool:
    """Whether a node's first output holds floating-point numbers."""
    if canonical(node.domain):
        return False
    if op_type in _CONSTANTS and _holds_floats(node):
        return True
    if op_type == "Cast":
        return any(a.name == "to" and a.i in _FLOAT_TYPES for a in node.attribute)
    made = first_output(op_type)
    if made.floats:
        return True
    read = node.input
    for place in made.like:
        if place < len(read) and (name := read[place]) and any(name in names for names in scopes):
            return True
    return False


def _holds_floats(node: NodeProto) -> bool:
    value = next((a for a in node.attribute if a.name == "value"), None)
    return _CONSTANTS[node.op_type] if value is None else value.t.data_type in _FLOAT_TYPES


#: The results of these may be integers in an older opset.
_ONCE_OF_INTEGERS = frozenset({"Erf", "ReduceLogSum", "ReduceLogSumExp"})


@functools.cache
def first_output(op_type: str) -> Made:
    """What an operator's first output is, by the newest schema: but for three operators, types only grow with the opset.

    Source: ONNX's operator schemas.
    """
    try:
        schema = defs.get_schema(op_type)
    except defs.SchemaError:
        return Made(False, ())
    if not schema.outputs or not schema.outputs[0].is_homogeneous:  # Loop's states have a type each
        return Made(False, ())
    kind = schema.outputs[0].type_str
    types = next((set(c.allowed_type_strs) for c in schema.type_constraints if c.type_param_str == kind), {kind})
    like = tuple(i for i, value in enumerate(schema.inputs) if value.type_str == kind and value.is_homogeneous)
    return Made(types <= _FLOATS and op_type not in _ONCE_OF_INTEGERS, like)
