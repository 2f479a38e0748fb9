# SPDX-License-Identifier: Apache-2.0
"""Around what the OpenVINO execution provider (1.24.1) gets wrong about inputs."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, ValueInfoProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import defaults_of, may_hold_graphs, nodes_in, subgraphs

#: Inputs of nodes that ONNX Runtime may need no more once it has rewritten them: how many are kept.
_MAY_GO: Mapping[str, int] = {"Shape": 0, "Size": 0, "CastLike": 1, "Dropout": 1}


def unused_last(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with unused inputs behind the others: the provider counts inputs without them, and reads the wrong ones."""
    graph = payload.adapted.proto.graph
    defaults = defaults_of(graph)  # these the provider does not count
    if len(graph.input) - len(defaults) < 2:
        return payload, ()
    used, read = _used(graph, {}), _used(graph, _MAY_GO)

    def place(value: ValueInfoProto) -> tuple[bool, bool]:
        return value.name not in used and value.name not in defaults, value.name not in read | defaults

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
