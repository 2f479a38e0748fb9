# SPDX-License-Identifier: Apache-2.0
"""The element types and ranges of a model's values, as far as they can be told without running or inferring anything."""

from __future__ import annotations

import functools
import math
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.values import (
    BOOL,
    INDEX,
    LIMITS,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    Value,
    arithmetic,
    of_type,
    union,
)
from onnx_multi_backend.models.graph_walk import canonical

_T = TensorProto

#: Operators whose elements are those of their first input, and of these other ones.
_MOVED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("Identity", "Reshape", "Transpose", "Gather", "GatherElements", "GatherND", "Slice"), (0,)),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "DepthToSpace", "SpaceToDepth"), (0,)),
    **dict.fromkeys(("Compress", "Split", "ReverseSequence", "Dropout", "Unique", "TopK", "MaxPool"), (0,)),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "CastLike"), (0,)),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Scatter": (0, 2),
    "TensorScatter": (0, 1),
    "Where": (1, 2),
    "OneHot": (2,),
    "Range": (0, 1),
}
#: Operators with graphs in their attributes; the checker admits no others.
_HOLDING = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_WITH_ZERO = frozenset({"Trilu", "Pad"})
_INDICES = frozenset({"Shape", "Size", "NonZero", "ArgMax", "ArgMin", "SequenceLength", "NonMaxSuppression"})
_ARITHMETIC = frozenset(
    {
        *("Add", "Sub", "Sum", "Mul", "Div", "Mod", "Neg", "Abs", "Relu", "Floor", "Ceil", "Round", "Max", "Min"),
        *("ReduceSum", "CumSum", "ReduceSumSquare", "ReduceProd", "ReduceL1", "ReduceL2", "MatMul"),
    }
)
_BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})
_UNARY = frozenset({"ReduceSum", "CumSum", "ReduceSumSquare", "ReduceProd", "ReduceL1", "ReduceL2"})

#: The largest amount of a BitShift whose result is told.
_FURTHEST = 31

_NOTHING = Value()

#: Elements of a constant beyond which its range is its type's.
_MOST_READ = 1 << 20

Values = MutableMapping[str, Value]
#: A graph keeps its id as long as it is held.
Nested = dict[int, tuple[GraphProto, Values]]
#: The number of elements that a node sums, where it is known.
Counts = Callable[[NodeProto], "int | None"]
#: Is told of each node, its operands and the unlimited result of its arithmetic.
Visit = Callable[[NodeProto, list[Value], "Value | None", Values], None]


def _nothing(node: NodeProto) -> int | None:
    return None


def ranges(
    graph: GraphProto,
    outer: Values | None = None,
    *,
    inputs: Mapping[str, Value] | None = None,
    visit: Visit | None = None,
    count: Counts = _nothing,
    nested: Nested | None = None,
) -> Values:
    """Tell the values of a graph.

    Parameters
    ----------
    graph : onnx.GraphProto
        Without local functions.
    outer : mapping of str to Value, optional
        The values around a subgraph.
    inputs : mapping of str to Value, optional
        What is known of inputs; by default what their types say.
    visit : callable, optional
        Is told of each node of the graph and its subgraphs.
    count : callable, optional
    nested : dict, optional
        Takes the values of each subgraph, by the subgraph's id, beside the subgraph itself.

    Returns
    -------
    mapping of str to Value
    """
    values: Values = (
        ChainMap({}, *(outer.maps if isinstance(outer, ChainMap) else [outer])) if outer is not None else {}
    )
    for info in graph.input:
        kind = info.type.tensor_type.elem_type
        values[info.name] = of_type(kind) if outer is None else _unknown(kind)
    values.update(inputs or {})
    given = {v.name for v in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in given:
            values[tensor.name] = of_tensor(tensor)
    for node in graph.node:
        operands = [values.get(name, _NOTHING) for name in node.input if name]
        domain = canonical(node.domain)
        holds = domain or node.op_type in _HOLDING
        bodies = [
            (g, ranges(g, values, visit=visit, count=count, nested=nested))
            for a in (node.attribute if holds else ())
            for g in _graphs(a)
        ]
        if nested is not None:
            nested.update((id(body[0]), body) for body in bodies)
        whole = None
        if domain:
            made = [_NOTHING] * len(node.output)
        else:
            made, whole = _made(node, operands, values, bodies, count)
        for name, value in zip(node.output, made, strict=False):
            if name:
                values[name] = value
        if visit is not None:
            visit(node, operands, whole, values)
    return values


def _graphs(attribute: Any) -> list[GraphProto]:
    if attribute.type == onnx.AttributeProto.GRAPH:
        return [attribute.g]
    return list(attribute.graphs) if attribute.type == onnx.AttributeProto.GRAPHS else []


def of_tensor(tensor: TensorProto) -> Value:
    """A constant. One that lies in a file, or is large, is known by its type alone."""
    whole = of_type(tensor.data_type)
    if whole.low is None or tensor.data_location == _T.EXTERNAL or tensor.data_type == _T.BOOL:
        return _scalar(tensor) or whole
    try:
        array = numpy_helper.to_array(tensor)
    except ValueError:  # its size and its bytes disagree, which the checker tells
        return whole
    if not array.size:
        return Value(tensor.data_type, 0, 0)
    if array.size > _MOST_READ and tensor.data_type not in (_T.INT64, _T.UINT64, _T.UINT32):
        return whole
    return Value(tensor.data_type, int(array.min()), int(array.max()))


def _scalar(tensor: TensorProto) -> Value | None:
    """A floating-point number, by which sizes are multiplied."""
    if tensor.data_type not in (_T.FLOAT, _T.DOUBLE) or tensor.data_location == _T.EXTERNAL:
        return None
    if len(tensor.dims) > 1 or any(d != 1 for d in tensor.dims):
        return None
    try:
        number = float(numpy_helper.to_array(tensor).item())
    except ValueError:
        return None
    return Value(tensor.data_type, number, number) if math.isfinite(number) else None


def _made(
    node: NodeProto, operands: list[Value], values: Values, bodies: list[tuple[GraphProto, Values]], count: Counts
) -> tuple[list[Value], Value | None]:
    """The values that a node makes, and the unlimited result of its arithmetic."""
    kind = node.op_type
    if kind == "Constant":
        return [of_constant(node)], None
    if kind in _INDICES:
        return [INDEX] * len(node.output), None
    if kind == "If" and len(bodies) == 2:
        return [
            union(found.get(graph.output[i].name, Value()) for graph, found in bodies if i < len(graph.output))
            if all(i < len(graph.output) for graph, _ in bodies)
            else Value()
            for i in range(len(node.output))
        ], None
    if kind in ("Loop", "Scan") and bodies:
        graph, found = bodies[0]
        outputs = list(graph.output)[1 if kind == "Loop" else 0 :]
        types = [found.get(v.name, Value()).elem_type or v.type.tensor_type.elem_type for v in outputs]
        return [_unknown(t) for t in types], None
    if kind in ("Cast", "CastLike"):
        return [_cast(_target(node, operands), operands[0])] if operands else [Value()], None
    if not operands:
        return _by_schema(node, values), None
    if kind in _MOVED or kind in _WITH_ZERO:
        return _moved(node, values), None
    if kind == "BitwiseAnd" and (masks := [v for v in operands if v.low is not None and v.low >= 0]):
        high = min(v.high for v in masks if v.high is not None)
        sources = frozenset().union(*(v.sources for v in operands))
        return [Value(operands[0].elem_type, 0, high, sources)], None
    if kind in _BITWISE and all(v.low is not None for v in operands):
        return [_bitwise(operands)], None
    if kind == "Clip":
        return [_clipped(node, values)], None
    if kind == "BitShift" and len(operands) == 2 and not operands[1].sources and operands[1].within(0, _FURTHEST):
        to_the_left = any(a.name == "direction" and a.s == b"LEFT" for a in node.attribute)
        whole = arithmetic(SHIFT_LEFT if to_the_left else SHIFT_RIGHT, operands)
        return [_limited(whole)], whole
    if kind in _ARITHMETIC and len(operands[:1] if kind in _UNARY else operands) >= 1:
        whole = arithmetic(kind, operands[:1] if kind in _UNARY else operands, count(node))
        return [_limited(whole)], whole
    return _by_schema(node, values), None


def _bitwise(operands: list[Value]) -> Value:
    """As many bits as the widest operand has; none of `BitwiseNot` is unsigned but of its type."""
    whole = union(operands)
    low, high = int(whole.low or 0), int(whole.high or 0)
    bits = max((-low - 1).bit_length() if low < 0 else 0, high.bit_length() if high > 0 else 0)
    if len(operands) < 2 and whole.elem_type in (_T.UINT32, _T.UINT64):
        return _unknown(whole.elem_type)._replace(sources=whole.sources)
    negative = low < 0 or len(operands) < 2
    return whole._replace(low=-(2**bits) if negative else 0, high=2**bits - 1)


def _limited(value: Value) -> Value:
    """What a type makes of a result that may leave its range."""
    limits = LIMITS.get(value.elem_type)
    if limits is None or value.low is None or value.within(*limits):
        return value
    if value.elem_type in (_T.UINT32, _T.UINT64) and value.within(LIMITS[_T.INT64][0], limits[1]):
        return value._replace(wrapped=True)
    return value._replace(low=limits[0], high=limits[1], wrapped=value.elem_type in (_T.UINT32, _T.UINT64))


def _moved(node: NodeProto, values: Values) -> list[Value]:
    read = [values.get(node.input[i], Value()) for i in _MOVED.get(node.op_type, (0,)) if i < len(node.input)]
    if node.op_type == "Pad" and len(node.input) > 2 and node.input[2]:
        read.append(values.get(node.input[2], Value()))
    elif node.op_type in _WITH_ZERO:
        read.append(Value(read[0].elem_type, 0, 0))
    data = union(read) if read else Value()
    if any(a.name == "reduction" and a.s not in (b"none", b"max", b"min") for a in node.attribute):
        data = _unknown(data.elem_type)._replace(sources=data.sources)
    others = BOOL if node.op_type == "Dropout" else INDEX
    if node.op_type == "Split":
        return [data] * len(node.output)
    return [data, *[others] * (len(node.output) - 1)]


@functools.cache
def _unknown(elem_type: int) -> Value:
    """What is computed in the model: the type's range, but for 64 bits, of which no model uses all."""
    return Value(elem_type) if elem_type in (_T.INT64, _T.UINT64, _T.UINT32) else of_type(elem_type)


def _clipped(node: NodeProto, values: Values) -> Value:
    x = values.get(node.input[0], Value())
    low, high, sources = x.low, x.high, x.sources
    for i, name in enumerate(node.input[1:3]):
        bound = values.get(name) if name else None
        if bound is None or bound.low is None or bound.high is None:
            continue
        sources |= bound.sources
        if i == 0:
            low = max(low, bound.low) if low is not None else None
            high = max(high, bound.high) if high is not None else None
        else:
            low = min(low, bound.low) if low is not None else None
            high = min(high, bound.high) if high is not None else None
    return x._replace(low=low, high=high, sources=sources)


def _cast(elem_type: int, x: Value) -> Value:
    limits = LIMITS.get(elem_type)
    if elem_type == _T.BOOL:
        return BOOL
    if limits is None or x.low is None or x.within(*limits):
        if x.low is None and limits is not None:
            return _unknown(elem_type)._replace(sources=x.sources, assumed=x.assumed)
        return x._replace(elem_type=elem_type)
    return of_type(elem_type)._replace(sources=x.sources, assumed=x.assumed)


def _target(node: NodeProto, operands: list[Value]) -> int:
    if node.op_type == "CastLike":
        return operands[1].elem_type if len(operands) > 1 else 0
    return next((a.i for a in node.attribute if a.name == "to"), 0)


def of_constant(node: NodeProto) -> Value:
    """What a node Constant makes."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return of_tensor(attribute.t)
        if attribute.name in ("value_int", "value_ints"):
            numbers = np.atleast_1d(helper.get_attribute_value(attribute))
            return Value(_T.INT64, int(min(numbers, default=0)), int(max(numbers, default=0)))
        if attribute.name in ("value_float", "value_floats"):
            return Value(_T.FLOAT)
    return Value()


@functools.cache
def _signature(op_type: str) -> tuple[tuple[int, int], ...]:
    """For each output of an operator: its element type, or else the input whose type it shares (-1: neither)."""
    try:
        schema = onnx.defs.get_schema(op_type)
    except onnx.defs.SchemaError:
        return ()
    inputs = [i.type_str for i in schema.inputs]
    found = []
    for output in schema.outputs:
        name = output.type_str
        found.append((_plain(name), inputs.index(name) if name in inputs else -1))
    return tuple(found)


def _plain(type_str: str) -> int:
    if not type_str.startswith("tensor("):
        return 0
    name = type_str.removeprefix("tensor(").removesuffix(")").upper()
    return int(_T.DataType.Value(name)) if name in _T.DataType.keys() else 0  # noqa: SIM118  # an enum has keys only


def _by_schema(node: NodeProto, values: Values) -> list[Value]:
    told = _signature(node.op_type)
    typed = next((a.i for a in node.attribute if a.name in ("dtype", "output_dtype") and a.i), 0)
    if node.op_type == "ConstantOfShape":
        tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        return [of_tensor(tensor) if tensor is not None else Value(_T.FLOAT, 0, 0)]
    if node.op_type == "Concat":
        return [union([values.get(name, Value()) for name in node.input])]
    read = [values.get(name, _NOTHING) for name in node.input]
    sources: frozenset[str] | None = None
    made = []
    for i in range(len(node.output)):
        elem_type, shared = told[min(i, len(told) - 1)] if told else (0, -1)
        if not elem_type and 0 <= shared < len(read):
            elem_type = read[shared].elem_type
        value = _unknown(typed or elem_type)
        if elem_type in LIMITS and elem_type != _T.BOOL:
            if sources is None:
                sources = frozenset().union(*(v.sources for name, v in zip(node.input, read, strict=True) if name))
            if sources:
                value = value._replace(sources=sources)
        made.append(value)
    return made
