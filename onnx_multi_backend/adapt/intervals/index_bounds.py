# SPDX-License-Identifier: Apache-2.0
"""The bounds of inputs by which a Gather takes rows of a constant: beyond the rows, ONNX has an error, and OpenVINO gives zeros."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.bounds import Bound
from onnx_multi_backend.adapt.intervals.hints import read_hint
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import constant_tensor

_BITS: Mapping[int, int] = {TensorProto.INT32: 32, TensorProto.INT64: 64}
#: Operators whose results hold all elements of their first input, and no others.
_MOVING = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
#: Operators whose results have as many rows as their first input.
_OF_ROWS = frozenset({"Cast", "DequantizeLinear", "Identity"})


def held_to_rows(bounds: Mapping[str, Bound], graph: GraphProto) -> dict[str, Bound]:
    """The bounds, lowered for inputs that are indices of a Gather in the main graph."""
    found = dict(bounds)
    for name, bound in _of_indices(graph):
        other = found.get(name)
        if other is not None:
            low, high = max(bound.low, other.low), min(bound.high, other.high)
            rows = bound.rows if (low, high) == (bound.low, bound.high) else other.rows
            bound = other._replace(low=low, high=high, rows=rows)
        found[name] = bound
    return found


def _of_indices(graph: GraphProto) -> Iterator[tuple[str, Bound]]:
    kinds = {v.name: v.type.tensor_type.elem_type for v in graph.input if read_hint(v) is None}
    given = {name: name for name, kind in kinds.items() if kind in _BITS}
    stored = {tensor.name for tensor in graph.initializer} if given else set()
    for name in stored & given.keys():  # an input with a default is a constant to OpenVINO
        del given[name]
    if not given:
        return
    makers, gathers = dict[str, NodeProto](), []
    for node in graph.node:
        operator = node.op_type
        if operator not in _MOVING and operator not in _OF_ROWS and operator not in ("Constant", "Gather"):
            continue
        if canonical(node.domain) or not node.output:
            continue
        first = node.input[0] if node.input else ""
        if operator == "Gather" and len(node.input) > 1 and node.input[1] in given:
            gathers.append(node)
        elif operator in _MOVING and first in given and _stays_whole(node):
            given[node.output[0]] = given[first]
        else:
            makers[node.output[0]] = node
    for node in gathers:
        shape, axis = _shape(graph, node.input[0], makers), next((a.i for a in node.attribute if a.name == "axis"), 0)
        if shape is not None and -len(shape) <= axis < len(shape) and shape[axis]:
            name, rows = given[node.input[1]], shape[axis]
            yield (
                name,
                Bound(-rows, rows - 1, "", _BITS[kinds[name]], rows=f"{node.input[0]!r} has {rows} along axis {axis}"),
            )


def _stays_whole(node: NodeProto) -> bool:
    return node.op_type != "Cast" or any(a.name == "to" and a.i in _BITS for a in node.attribute)


def _shape(graph: GraphProto, name: str, makers: Mapping[str, NodeProto]) -> list[int] | None:
    """The shape of a constant, which may be stored in another type."""
    while (maker := makers.get(name)) is not None and maker.op_type in _OF_ROWS and maker.input:
        name = maker.input[0]
    if maker is not None:
        tensor = constant_tensor(maker) if maker.op_type == "Constant" else None
        return None if tensor is None else list(tensor.dims)
    given = {value.name for value in graph.input}
    return next((list(t.dims) for t in graph.initializer if t.name == name and name not in given), None)
