# SPDX-License-Identifier: Apache-2.0
"""What is known of a run's inputs, written into the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

from onnx_multi_backend.models.graph_walk import bodies
from onnx_multi_backend.models.tensors import numpy_dtype

Shapes = Mapping[str, tuple[int, ...]]
#: What single integers among the inputs are.
Values = Mapping[str, int]
NO_VALUES: Values = MappingProxyType({})

_SUFFIX = "/omb_known"


def with_shapes(model: ModelProto, named: Callable[[str], str], shapes: Shapes) -> ModelProto:
    """A copy of the model whose inputs have these shapes, whatever their symbols say elsewhere.

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
    return copy


def with_values(model: ModelProto, named: Callable[[str], str], values: Values) -> ModelProto:
    """A copy of the model in which constants are read in the place of these inputs, which stay, and nothing reads them.

    Their shapes are known.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    known: dict[str, TensorProto] = {}
    for value in copy.graph.input:
        if named(value.name) in values:
            kind = value.type.tensor_type
            array = np.full(
                [d.dim_value for d in kind.shape.dim], values[named(value.name)], numpy_dtype(kind.elem_type)
            )
            known[value.name] = numpy_helper.from_array(array, value.name + _SUFFIX)
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
