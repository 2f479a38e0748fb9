# SPDX-License-Identifier: Apache-2.0
"""Declared sizes below 0, by which onnx's inference of a GatherND reads beyond a shape and ends the process (seen with onnx 1.23)."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorShapeProto

from onnx_multi_backend.models.graph_walk import all_nodes, graphs_in


def may_crash(model: ModelProto) -> bool:
    """Whether onnx's inference may crash on a model as it stands."""
    reads = any(node.op_type == "GatherND" for node in all_nodes(model))
    return reads and next(_negative(model), None) is not None


def without(model: ModelProto) -> ModelProto:
    """The model, or where onnx's inference may crash a copy in which such sizes are not known, as engines take them."""
    if not may_crash(model):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for dim in _negative(copy):
        dim.Clear()
    return copy


def _negative(model: ModelProto) -> Iterator[TensorShapeProto.Dimension]:
    for graph in graphs_in(model.graph):
        for value in (*graph.input, *graph.value_info, *graph.output):
            yield from (dim for dim in value.type.tensor_type.shape.dim if dim.dim_value < 0)
