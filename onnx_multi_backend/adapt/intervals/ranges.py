# SPDX-License-Identifier: Apache-2.0
"""The element types and ranges of a model's values, as far as they are known without running or inferring anything."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx
from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt.intervals.constant_values import of_constant, of_tensor
from onnx_multi_backend.adapt.intervals.differences import Differences
from onnx_multi_backend.adapt.intervals.hints import read_hint
from onnx_multi_backend.adapt.intervals.made_values import made_by
from onnx_multi_backend.adapt.intervals.values import STEPS, WIDE_UNSIGNED, Value, may_have_wrapped, of_type
from onnx_multi_backend.adapt.operation import Counts, Made, Operation, Values, unknown
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS, canonical, nodes_in

_NOTHING = Value()
_CHOSEN = frozenset({"Sub", "Where"})
#: What may make an unsigned number that wraps around below 0 of numbers that do not.
_WRAPPING = frozenset({"BitCast", "BitwiseNot", "CastLike", "Sub"})

#: A graph keeps its id as long as it is held.
Nested = dict[int, tuple[GraphProto, Values]]
#: Is called with each node, its operands and its results.
Visit = Callable[[NodeProto, list[Value], Made], None]


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
        What is known of inputs; by default what their types and hints say.
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
        values[info.name] = (read_hint(info) or of_type(kind)) if outer is None else unknown(kind)
    values.update(inputs or {})
    given = {v.name for v in graph.input}
    for tensor in graph.initializer:
        name = tensor.name
        if name not in given:
            values[name] = of_tensor(tensor)
    return follow(graph, graph.node, values, visit=visit, count=count, nested=nested)


def follow(
    graph: GraphProto,
    nodes: Iterable[NodeProto],
    values: Values,
    *,
    visit: Visit | None = None,
    count: Counts = _nothing,
    nested: Nested | None = None,
) -> Values:
    """Tell what some nodes of a graph make, in their order, of these values, among which it is put; see `ranges`."""
    get, declared, differences = values.get, None, None
    for node in nodes:
        operator, domain = node.op_type, canonical(node.domain)
        if operator == "Constant" and not domain:  # exporters write as many of them as other nodes
            constant = of_constant(node)
            values.update((name, constant) for name in node.output[:1] if name)
            if visit is not None:
                visit(node, [], Made([constant]))
            continue
        names = list(node.input)
        read = [get(name, _NOTHING) if name else _NOTHING for name in names]
        operands = [get(name, _NOTHING) for name in names if name] if "" in names else read
        bodies = []
        if domain or operator in WITH_GRAPHS:
            for body in (g for a in node.attribute for g in _graphs(a)):
                carried = _carried(body, operands, values) if operator in STEPS and not domain else None
                found = ranges(body, values, inputs=carried, visit=visit, count=count, nested=nested)
                bodies.append((body, found))
            if nested is not None:
                nested.update((id(body[0]), body) for body in bodies)
        if domain:
            declared = declared if declared is not None else {v.name: v.type for v in graph.value_info}
            types = (declared[name].tensor_type.elem_type if name in declared else 0 for name in node.output)
            made = Made([unknown(kind) if kind else _NOTHING for kind in types])
        else:
            made = made_by(Operation(node, operator, read, operands, bodies, count))
            if operator in _CHOSEN and may_have_wrapped(made.values[0]):
                differences = differences or Differences(graph, values)
                made = differences.corrected(node, made)
        for name, value in zip(node.output, made.values, strict=False):
            if name:
                values[name] = value
        if visit is not None:
            visit(node, operands, made)
    return values


def _carried(body: GraphProto, operands: list[Value], outer: Values) -> dict[str, Value]:
    """What is known of the unsigned inputs of a step where they may be numbers that have wrapped around below 0, before the loop or in another step."""
    kinds = {v.name: v.type.tensor_type.elem_type for v in body.input if v.type.tensor_type.elem_type in WIDE_UNSIGNED}
    if not kinds:
        return {}
    sources = [value.sources for value in operands if may_have_wrapped(value)]
    for node in nodes_in(body.node):
        if _may_wrap(node):
            sources.append(frozenset())
        read = (outer[name] for name in node.input if name in outer)
        sources += [value.sources for value in read if may_have_wrapped(value)]
    if not sources:
        return {}
    return {name: Value(kind, sources=frozenset().union(*sources), wrapped=True) for name, kind in kinds.items()}


def _may_wrap(node: NodeProto) -> bool:
    """Whether a node may make an unsigned number that wraps around of others, as far as it tells itself."""
    if node.op_type == "Cast":
        return any(a.name == "to" and a.i in WIDE_UNSIGNED for a in node.attribute)
    return node.op_type in _WRAPPING


def _graphs(attribute: Any) -> list[GraphProto]:
    if attribute.type == onnx.AttributeProto.GRAPH:
        return [attribute.g]
    return list(attribute.graphs) if attribute.type == onnx.AttributeProto.GRAPHS else []
