# SPDX-License-Identifier: Apache-2.0
"""Around what the OpenVINO execution provider (1.24.1) gets wrong about inputs."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import defaults_of, may_hold_graphs, nodes_in, subgraphs

#: Inputs of nodes that ONNX Runtime may need no more once it has rewritten them: how many are kept.
_MAY_GO: Mapping[str, int] = {"Shape": 0, "Size": 0, "CastLike": 1, "Dropout": 1}
#: What makes one node with a Reshape before it, whose new shape counts for nothing then.
_FUSED = frozenset({"Reshape", "Unsqueeze"})
#: What is left out between them.
_LEFT_OUT = frozenset({"Identity", "Cast"})


def unused_last(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with unused inputs behind the others: the provider counts inputs without them, and reads the wrong ones."""
    graph = payload.adapted.proto.graph
    defaults = defaults_of(graph)  # these the provider does not count
    if len(graph.input) - len(defaults) < 2:
        return payload, ()
    used, read = _used(graph, {}), _used(graph, _MAY_GO)
    passed_over = _passed_over(graph)

    def place(value: ValueInfoProto) -> tuple[bool, bool, bool]:
        gone = value.name not in used and value.name not in defaults
        return gone, value.name in passed_over, value.name not in read | defaults

    ordered = sorted(graph.input, key=place)
    if [value.name for value in ordered] == [value.name for value in graph.input]:
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    del copy.graph.input[:]
    copy.graph.input.extend(ordered)
    names = ", ".join(str(value.name) for value in ordered if any(place(value)))
    change = Adaptation(
        "unused_last",
        "",
        f"unused inputs ({names}) stand behind the others",
        "the OpenVINO execution provider counts inputs without those that nothing uses, and would read others",
    )
    return payload.changed(copy, change), (change,)


def _passed_over(graph: GraphProto) -> set[str]:
    """New shapes that nothing reads but Reshapes one behind another, which become one: where its shape is declared, all of theirs go."""
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape" and len(node.input) > 1}
    if shapes.isdisjoint(value.name for value in graph.input):
        return set()
    readers: dict[str, list[NodeProto | None]] = {value.name: [None] for value in graph.output}
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        for name in {*node.input, *(n for g in subgraphs(node) for inner in nodes_in(g.node) for n in inner.input)}:
            readers.setdefault(name, []).append(node)

    def is_reshaped(name: str) -> bool:
        """Whether all that reads a value gives it another shape once more."""
        return all(
            node is not None
            and node.input[0] == name
            and name not in node.input[1:]
            and (node.op_type in _FUSED or (node.op_type in _LEFT_OUT and is_reshaped(node.output[0])))
            for node in readers.get(name, [None])
        )

    def was_reshaped(name: str) -> bool:
        """Whether a value comes of a Reshape that becomes one with what reads it."""
        node = makers.get(name)
        while node is not None and node.op_type in _LEFT_OUT:
            node = makers.get(node.input[0])
        return node is not None and node.op_type == "Reshape" and is_reshaped(node.output[0])

    def goes(name: str) -> bool:
        return all(
            node is not None
            and node.op_type == "Reshape"
            and node.input[0] != name
            and (is_reshaped(node.output[0]) or was_reshaped(node.input[0]))
            for node in readers[name]
        )

    return set(filter(goes, shapes))


def _used(graph: GraphProto, may_go: Mapping[str, int]) -> set[str]:
    """Names of values that the outputs depend on; of some operators only the first inputs count."""
    needed = {value.name for value in graph.output}
    for node in reversed(graph.node):  # in topological order, as ONNX wants it
        if needed.isdisjoint(node.output):
            continue
        operator = node.op_type
        needed.update(node.input[: may_go[operator]] if operator in may_go else node.input)
        if node.domain or may_hold_graphs(operator):
            for subgraph in subgraphs(node):
                for inner in nodes_in(subgraph.node):
                    needed.update(inner.input[: may_go.get(inner.op_type)])
                    needed.update(value.name for body in subgraphs(inner) for value in body.output)
                needed.update(value.name for value in subgraph.output)
    return needed
