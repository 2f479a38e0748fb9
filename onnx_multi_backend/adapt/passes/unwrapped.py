# SPDX-License-Identifier: Apache-2.0
"""Pass: optionals that a model wraps a value in, only to ask for that value again, for an engine that has none of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from onnx_multi_backend.adapt.work import Adaptation, Work
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, subgraphs

_GET, _HAS = "OptionalGetElement", "OptionalHasElement"


def unwrapped(work: Work) -> None:
    """Hand the value to what asks for it, and say whether there is one. Source: Optional's documentation."""
    if not work.contents.has({"Optional"}) or work.model.functions or work.limits.has_optionals():
        return
    if not _taken_apart(work.model.graph):
        return
    graph = work.edit().graph
    found = _taken_apart(graph)
    for node in nodes_in(graph.node):
        wrapped = found.get(node.input[0]) if node.op_type in (_GET, _HAS) and node.input else None
        if wrapped is None:
            continue
        if node.op_type == _GET:
            made = helper.make_node("Identity", [wrapped.input[0]], node.output, node.name)
        else:
            value = numpy_helper.from_array(np.array(any(wrapped.input)))
            made = helper.make_node("Constant", [], node.output, node.name, value=value)
        node.CopyFrom(made)
    for wrapped in found.values():
        where = f"Optional (output {wrapped.output[0]!r})"
        reason = "the engine has no optionals"
        work.changes.append(Adaptation("unwrapped", where, "its value is handed on without it", reason))
    for holder in _graphs(graph):
        kept = [NodeProto.FromString(n.SerializeToString()) for n in holder.node if not _wraps(n, found)]
        del holder.node[:]
        holder.node.extend(kept)


def _taken_apart(graph: GraphProto) -> dict[str, NodeProto]:
    """The nodes that wrap, by output, where all that reads it takes it apart."""
    makers: dict[str, NodeProto] = {}
    made: Counter[str] = Counter()
    elsewhere: set[str] = set()
    empty_read: set[str] = set()
    for holder in _graphs(graph):
        made.update({value.name for value in holder.input} | {tensor.name for tensor in holder.initializer})
        elsewhere.update(value.name for value in holder.output)
        for node in holder.node:
            made.update(filter(None, node.output))
            if node.op_type == "Optional" and not canonical(node.domain):
                makers[node.output[0]] = node
            if node.op_type not in (_GET, _HAS):
                elsewhere.update(node.input)
            elif node.op_type == _GET:
                empty_read.update(node.input)
    return {
        name: node
        for name, node in makers.items()
        if name not in elsewhere
        and (any(node.input) or name not in empty_read)
        and all(made[each] == 1 for each in (name, *filter(None, node.input)))  # else a body may hide it
    }


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Those inside first: a copy of a node has the ones that it holds."""
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)
    yield graph


def _wraps(node: NodeProto, found: dict[str, NodeProto]) -> bool:
    return node.op_type == "Optional" and bool(node.output) and node.output[0] in found
