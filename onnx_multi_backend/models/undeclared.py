# SPDX-License-Identifier: Apache-2.0
"""A model that declares the shapes of its inputs alone: what it declares of other values may be wrong."""

from __future__ import annotations

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto

from onnx_multi_backend.models.graph_walk import bodies

#: What gives the results of several steps.
_STEPPING = frozenset({"Loop", "Scan"})


def without_declared(model: ModelProto, *, steps: bool = False) -> ModelProto:
    """A copy whose values, other than the model's own inputs, have no declared shapes; they keep their element types.

    Parameters
    ----------
    steps : bool
        Whether the inputs and results of bodies that are run in steps keep theirs: onnx infers little of those.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    given = {value.name: value.type for value in copy.graph.input}
    forget_initializers(copy.graph)
    for value in (*copy.graph.value_info, *copy.graph.output):
        if value.name in given:  # an input that is passed on
            value.type.CopyFrom(given[value.name])
        else:
            _open(value)
    _open_inside(copy.graph, steps=steps)
    return copy


def forget_initializers(graph: GraphProto) -> None:
    """Leave out what a graph declares of its initializers: without a shape there, onnx (1.23) takes the axes of a Slice for all."""
    held = {tensor.name for tensor in graph.initializer}
    if any(value.name in held for value in graph.value_info):
        kept = [value for value in graph.value_info if value.name not in held]
        del graph.value_info[:]
        graph.value_info.extend(kept)


def infers(model: ModelProto) -> bool:
    """Whether onnx infers the types of a model without a fault, what it declares among them."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (
        onnx.shape_inference.InferenceError,
        ValueError,
        IndexError,
    ):  # onnx (1.23) reads constants without elements
        return False
    return True


def _open_inside(graph: GraphProto, *, steps: bool) -> None:
    for node in graph.node:
        for body in bodies(node):
            forget_initializers(body)
            kept = steps and node.op_type in _STEPPING
            for value in (*body.value_info, *(() if kept else (*body.input, *body.output))):
                _open(value)
            _open_inside(body, steps=steps)


def _open(value: ValueInfoProto) -> None:
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.ClearField("shape")
