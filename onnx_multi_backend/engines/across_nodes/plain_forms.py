# SPDX-License-Identifier: Apache-2.0
"""Models without what hides a form from the rules: lists of integers that an Identity passes on, and results of Unique that nothing reads.

What OpenVINO gets wrong depends on the integers that a node reads (an Expand to no elements, or by a list of no axes), and on whether the inverse
indices of a Unique are asked for. Both are looked for in single nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.apart import flat_for
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, constants_of, graphs_in, subgraphs

#: More integers are no list of sizes or axes.
_MOST = 64
_WHOLE = frozenset({TensorProto.INT32, TensorProto.INT64})
_PASS = "plain_forms"


def plain_forms(contents: Contents) -> Rewritten | None:
    """A copy of the model without these; None where there are none."""
    unread = any(len(list(filter(None, node.output))) > 1 for node in contents.of("Unique"))
    if not (unread or _passes_integers_on(contents)) or (flat := flat_for(contents)) is None:
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    changes = [*_with_constants(copy.graph, {}), *_without_unread(copy)]
    return Rewritten(copy, tuple(changes)) if changes else None


def _passes_integers_on(contents: Contents) -> bool:
    passed = {node.input[0] for node in contents.of("Identity") if node.input}
    return bool(passed) and any(name in passed and _is_list(tensor) for name, tensor in contents.named)


def _is_list(tensor: TensorProto) -> bool:
    return tensor.data_type in _WHOLE and len(tensor.dims) < 2 and sum(tensor.dims) <= _MOST


def _with_constants(graph: GraphProto, outer: Mapping[str, TensorProto]) -> Iterator[Adaptation]:
    """Have nodes read the integers themselves, in a graph and those inside it."""
    own = {name for node in graph.node for name in node.output} | {value.name for value in graph.input}
    held = {name: tensor for name, tensor in outer.items() if name not in own}
    held.update(constants_of(graph))
    for value in graph.input:  # a default may be given another value
        held.pop(value.name, None)
    passed: dict[str, str] = {}
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _with_constants(inner, held)
        read = [name for name in node.input if name in passed]
        if read:
            node.input[:] = [passed.get(name, name) for name in node.input]
            reason = "OpenVINO gets forms wrong that depend on what a node reads"
            yield Adaptation(_PASS, _where(node), "reads a constant itself, not what Identity makes of it", reason)
        passes = node.op_type == "Identity" and not canonical(node.domain)
        if passes and node.input and node.input[0] in held and _is_list(held[node.input[0]]):
            passed[node.output[0]] = node.input[0]


def _without_unread(model: ModelProto) -> Iterator[Adaptation]:
    """Leave the results of Unique out that nothing reads."""
    read = {name for node in all_nodes(model) for name in node.input}
    read.update(value.name for graph in graphs_in(model.graph) for value in graph.output)
    for node in all_nodes(model):
        if node.op_type != "Unique" or canonical(node.domain):
            continue
        kept = [
            *node.output[:1],
            *(name if name in read else "" for name in node.output[1:]),
        ]  # the first is not optional
        if kept != list(node.output):
            where = _where(node)
            node.output[:] = kept
            yield Adaptation(
                _PASS, where, "makes only what is read", "OpenVINO orders the results by what is asked for"
            )


def _where(node: NodeProto) -> str:
    return f"{node.op_type} {node.name or next(filter(None, node.output), '')!r}"
