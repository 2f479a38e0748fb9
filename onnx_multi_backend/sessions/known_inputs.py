# SPDX-License-Identifier: Apache-2.0
"""What is known of a run's inputs, written into the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.models.graph_walk import all_nodes, bodies
from onnx_multi_backend.models.tensors import numpy_dtype
from onnx_multi_backend.models.undeclared import forget_initializers

Shapes = Mapping[str, tuple[int, ...]]
#: What single integers among the inputs are.
Values = Mapping[str, int]
NO_VALUES: Values = MappingProxyType({})

_SUFFIX = "/omb_known"
#: Operators with graphs of which some may not run, and the inputs that tell which.
_CHOOSING = {"If": 1, "Loop": 2}


def with_shapes(model: ModelProto, named: Callable[[str], str], shapes: Shapes) -> ModelProto:
    """A copy of the model whose inputs have these shapes, whatever their symbols say elsewhere; other values have as many axes as are declared.

    What exporters declare of values inside a model may hold of the shapes alone with which it was traced.

    Parameters
    ----------
    named : callable
        The engine's name of an input.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        shape = shapes.get(named(value.name))
        if shape is not None and value.type.HasField("tensor_type"):
            del value.type.tensor_type.shape.dim[:]
            value.type.tensor_type.shape.SetInParent()
            for size in shape:
                value.type.tensor_type.shape.dim.add(dim_value=size)
    forget_initializers(copy.graph)
    for value in copy.graph.value_info:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return copy


def with_values(model: ModelProto, named: Callable[[str], str], values: Values) -> ModelProto:
    """A copy of the model in which constants are read in the place of these inputs, which stay, and nothing reads them.

    Their shapes are known.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    known: dict[str, TensorProto] = {}
    taken = names_taken(model) if values else set()
    for value in copy.graph.input:
        if named(value.name) in values and value.type.HasField("tensor_type"):
            kind = value.type.tensor_type
            array = np.full(
                [d.dim_value for d in kind.shape.dim], values[named(value.name)], numpy_dtype(kind.elem_type)
            )
            known[value.name] = numpy_helper.from_array(array, unused(value.name + _SUFFIX, taken))
    copy.graph.initializer.extend(known.values())
    _read(copy.graph, known)
    return copy


def _read(graph: GraphProto, known: Mapping[str, TensorProto]) -> None:
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in known:
                node.input[i] = known[name].name
        for body in bodies(node):
            own = {name for inner in body.node for name in inner.output} | {value.name for value in body.input}
            _read(body, {name: tensor for name, tensor in known.items() if name not in own})


def deciding(model: ModelProto) -> set[str]:
    """The inputs from which conditions of branches and loops, and trip counts, are computed; those with a default left out."""
    nodes = list(all_nodes(model))
    wanted: set[str] = set()
    for node in nodes:
        if node.op_type in _CHOOSING:
            wanted.update(node.input[: _CHOOSING[node.op_type]])
            wanted.update(body.output[0].name for body in bodies(node) if node.op_type == "Loop" and body.output)
    before = -1
    while len(wanted) > before:
        before = len(wanted)
        for node in nodes:
            if not wanted.isdisjoint(node.output):
                wanted.update(node.input, (value.name for body in bodies(node) for value in body.output))
    defaults = {tensor.name for tensor in model.graph.initializer}
    return {value.name for value in model.graph.input if value.name in wanted and value.name not in defaults}
