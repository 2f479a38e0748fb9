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
_FUSED = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
#: Of these the second input goes too.
_SHAPED = frozenset({"Reshape", "Unsqueeze"})
#: What is left out between them.
_LEFT_OUT = frozenset({"Identity", "Cast"})


def unused_last(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with unused inputs behind the others: the provider counts inputs without them, and reads the wrong ones."""
    graph = payload.adapted.proto.graph
    defaults = defaults_of(graph)  # these the provider does not count
    if len(graph.input) - len(defaults) < 2:
        return payload, ()
    used, read = _used(graph, {}), used_in(graph)
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


def used_in(graph: GraphProto) -> set[str]:
    """Names of values that the outputs of a graph depend on, once ONNX Runtime has rewritten its nodes."""
    return _used(graph, _MAY_GO)


def _passed_over(graph: GraphProto) -> set[str]:
    """New shapes that nothing reads but Reshapes one behind another, which become one: where its shape is declared, all of theirs go.

    So do the axes of an Unsqueeze behind them.
    """
    shapes = {node.input[1] for node in graph.node if node.op_type in _SHAPED and len(node.input) > 1}
    if shapes.isdisjoint(value.name for value in graph.input):
        return set()
    readers: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        for name in {*node.input, *(n for g in subgraphs(node) for inner in nodes_in(g.node) for n in inner.input)}:
            readers.setdefault(name, []).append(node)
    results = {value.name for value in graph.output}
    fused: set[str] = set()  # values that only get another shape once more
    for node in reversed(graph.node):
        for name in node.output:
            found = readers.get(name, ())
            if found and name not in results and all(_reshapes(reader, name, fused) for reader in found):
                fused.add(name)
    gone: set[str] = set()  # values of nodes that are fused with what reads them
    for node in graph.node:
        starts = node.op_type == "Reshape" and node.output[0] in fused
        if starts or (node.op_type in _FUSED | _LEFT_OUT and node.input and node.input[0] in gone):
            gone.add(node.output[0])

    def goes(name: str) -> bool:
        return all(
            node.op_type in _SHAPED and node.input[0] != name and node.output[0] in gone for node in readers[name]
        )

    return set(filter(goes, shapes))


def _reshapes(node: NodeProto, name: str, fused: set[str]) -> bool:
    """Whether a node gives a value another shape, or passes it on to what does."""
    if not node.input or node.input[0] != name or name in node.input[1:]:
        return False
    return node.op_type in _FUSED or (node.op_type in _LEFT_OUT and node.output[0] in fused)


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
