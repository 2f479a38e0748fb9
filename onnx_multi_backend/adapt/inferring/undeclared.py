# SPDX-License-Identifier: Apache-2.0
"""A model that declares the types of its inputs alone: what it declares of other values may be wrong."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto

from onnx_multi_backend.models.graph_walk import bodies


def without_declared(model: ModelProto) -> ModelProto:
    """A copy whose values, other than the model's own inputs, have no declared shapes; results keep their element types."""
    copy = ModelProto()
    copy.CopyFrom(model)
    main, *others = _graphs(copy.graph)
    for graph in (main, *others):
        del graph.value_info[:]
    for value in (*main.output, *(value for body in others for value in (*body.input, *body.output))):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copy


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for body in bodies(node):
            yield from _graphs(body)
