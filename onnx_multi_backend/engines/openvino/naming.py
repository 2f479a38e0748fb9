# SPDX-License-Identifier: Apache-2.0
"""Keeping the names of graph inputs.

OpenVINO's ONNX frontend removes nodes that only pass a value on (Dropout outside training, Sum of one input, ...) and
then calls the graph input by the name of the removed node's output: nothing tells any more which input it is. An
Identity between the input and its consumers keeps the input's own name. Reported upstream as
https://github.com/openvinotoolkit/openvino/issues/21615.
"""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, ModelProto, helper

from onnx_multi_backend.adapt import Adaptation

_SUFFIX = "/omb_input"


def lost_inputs(read: Any, graph: GraphProto) -> bool:
    """Whether a model that OpenVINO read has an input that bears no graph input's name."""
    names = {value.name for value in graph.input}
    return any(not (port.names & names) for port in read.inputs)


def with_identities(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model in which an Identity follows each graph input, and the record of that."""
    copy = ModelProto()
    copy.CopyFrom(model)
    renamed = {value.name: value.name + _SUFFIX for value in copy.graph.input}
    _rename(copy.graph, renamed)
    nodes = [helper.make_node("Identity", [old], [new]) for old, new in renamed.items()]
    for node in reversed(nodes):
        copy.graph.node.insert(0, node)
    reason = "OpenVINO's frontend would lose the input's name with a node that passes its value on"
    return copy, tuple(Adaptation("input_identity", old, "an Identity follows the input", reason) for old in renamed)


def _rename(graph: GraphProto, renamed: dict[str, str]) -> None:
    """Rename what nodes read; a subgraph's own names hide outer ones."""
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in renamed:
                node.input[i] = renamed[name]
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                own = {v.name for v in inner.input} | {t.name for t in inner.initializer}
                own |= {name for n in inner.node for name in n.output}
                _rename(inner, {old: new for old, new in renamed.items() if old not in own})
                for value in inner.output:
                    if value.name in renamed and value.name not in own:
                        value.name = renamed[value.name]
