# SPDX-License-Identifier: Apache-2.0
"""The size that a Reshape leaves to be inferred (-1) of a tensor without elements.

ONNX infers it from a number of elements, of which 0 says nothing. Where the axes of size 0 are those that the Reshape copies, PyTorch has what the
others come to: (6, 0, 2, 4) reshaped to (0, 0, -1) is (6, 0, 8). Its exporter writes that between the layers of a bidirectional LSTM.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorShapeProto, numpy_helper

from onnx_multi_backend.adapt.single_node import infer
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import tensor_types
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.skeleton import skeleton_of
from onnx_multi_backend.models.tensors import has_zero
from onnx_multi_backend.models.undeclared import without_declared


def tell_sizes(model: ModelProto) -> bool:
    """Write these sizes into the Reshapes of a model whose inputs have the shapes of a run, in place; whether there were any."""
    given = (value.type.tensor_type.shape.dim for value in model.graph.input)
    if not any(map(has_zero, given)):
        return False
    waiting = _left_open(model)
    told = False
    while waiting:
        types = tensor_types([infer(without_declared(skeleton_of(Contents(model)), steps=True)).graph])
        found = {
            place: sizes
            for place, (node, wanted) in waiting.items()
            if node.input[0] in types and (sizes := _told(types[node.input[0]].shape.dim, wanted)) is not None
        }
        if not found:
            break
        taken = names_taken(model)
        for place, sizes in found.items():
            node, _ = waiting.pop(place)
            name = unused(f"{node.input[1]}/{place}", taken)
            model.graph.initializer.append(numpy_helper.from_array(np.array(sizes, np.int64), name))
            node.input[1] = name
        told = True
    return told


def _left_open(model: ModelProto) -> dict[int, tuple[NodeProto, list[int]]]:
    """The Reshapes to a known shape that leaves a size open beside some that are copied, and that shape, by their place."""
    found = {}
    held: dict[str, list[int]] = {}
    reshapes = [(place, node) for place, node in enumerate(model.graph.node) if node.op_type == "Reshape"]
    for name, tensor in Contents(model).named if reshapes else ():
        if len(tensor.dims) == 1 and any(len(node.input) > 1 and node.input[1] == name for _, node in reshapes):
            held[name] = numpy_helper.to_array(tensor).tolist()
    for place, node in reshapes:
        if canonical(node.domain) or any(a.name == "allowzero" and a.i for a in node.attribute) or len(node.input) < 2:
            continue
        wanted = held.get(node.input[1], [])
        if -1 in wanted and 0 in wanted:
            found[place] = node, wanted
    return found


def _told(dims: Iterable[TensorShapeProto.Dimension], wanted: Sequence[int]) -> list[int] | None:
    """The shape with a size in the place of -1; None where that of the tensor is not known, it has elements, or they do not tell."""
    sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in dims]
    if -1 in sizes or 0 not in sizes:
        return None
    rest = math.prod(size for axis, size in enumerate(sizes) if wanted[axis : axis + 1] != [0])
    given = math.prod(size for size in wanted if size > 0)
    if not rest or rest % given:
        return None
    return [rest // given if size == -1 else size for size in wanted]
