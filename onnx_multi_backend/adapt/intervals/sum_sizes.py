# SPDX-License-Identifier: Apache-2.0
"""How many elements a node sums, as far as the shapes of what it reads tell."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.intervals.constant_reductions import axes_given, constants_of, reduces_nothing
from onnx_multi_backend.adapt.operation import Counts
from onnx_multi_backend.adapt.single_node import typed_of
from onnx_multi_backend.adapt.sizes.size import OPEN, Size, Sizes
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.models.contents import Contents

_REDUCTIONS = frozenset({"ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"})
_SCATTERS = frozenset({"ScatterElements", "ScatterND"})

#: Operators whose results depend on how many elements they sum.
COUNTED = _REDUCTIONS | _SCATTERS | {"CumSum", "Einsum", "Gemm", "MatMul"}

#: Each size, None where it is not known.
_Shape = Sequence[Size]


def counter(model: ModelProto) -> Counts:
    """What tells how many elements a node sums at most; None where that is not known.

    Parameters
    ----------
    model : onnx.ModelProto
        Without local functions.
    """
    kept = _Counting(model)

    def count(node: NodeProto) -> int | None:
        place = 2 if node.op_type in _SCATTERS else 0
        name = node.input[place] if len(node.input) > place else ""
        told = kept.told.get(name)
        summed = () if told is None else _summed(node, told, kept.constants)
        if told is not None and all(
            isinstance(size, int) or (size is OPEN and kept.declares_nothing) for size in summed
        ):
            return _product(summed)
        shape = kept.shapes.get(name)
        return None if shape is None else _product(_summed(node, shape, kept.constants))

    return count


class _Counting:
    """What is known of a model's sizes, once it is asked for: inference takes long."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model

    @functools.cached_property
    def told(self) -> Mapping[str, Sizes]:
        """The sizes that its inputs and nodes tell."""
        return sizes_of(Contents(self._model))

    @functools.cached_property
    def declares_nothing(self) -> bool:
        """Whether inference knows no sizes but those that inputs and nodes tell: none are declared between."""
        return not any(graph.value_info for graph in inner_first(self._model.graph)[::-1])

    @functools.cached_property
    def constants(self) -> dict[str, TensorProto]:
        """The constants of its graphs."""
        return {
            name: tensor
            for graph in inner_first(self._model.graph)[::-1]
            for name, tensor in constants_of(graph).items()
        }

    @functools.cached_property
    def shapes(self) -> Mapping[str, _Shape]:
        """The sizes that inference tells."""
        shapes: dict[str, _Shape] = {}
        for graph in inner_first(typed_of(self._model).model.graph)[::-1]:
            shapes.update({tensor.name: tuple(tensor.dims) for tensor in graph.initializer})
            for value in (*graph.input, *graph.value_info, *graph.output):
                tensor = value.type.tensor_type
                if tensor.HasField("shape"):
                    shapes[value.name] = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        return shapes


def _product(sizes: _Shape) -> int | None:
    known = [max(size, 1) for size in sizes if isinstance(size, int)]
    return math.prod(known) if len(known) == len(sizes) else None


def _summed(node: NodeProto, shape: _Shape, constants: dict[str, TensorProto]) -> _Shape:
    """The sizes of the axes that a node sums over; of all where it is not known which."""
    axes = _axes(node, len(shape), constants)
    if axes is None or any(not -len(shape) <= axis < len(shape) for axis in axes):
        return shape
    return [shape[axis] for axis in {axis % len(shape) for axis in axes}]


def _axes(node: NodeProto, rank: int, constants: dict[str, TensorProto]) -> Sequence[int] | None:
    if node.op_type in _REDUCTIONS:
        given = axes_given(node, constants)
        return given if given or reduces_nothing(node, given) else None
    if node.op_type == "MatMul":
        return [-1]
    if node.op_type == "Gemm":
        return [0] if any(a.name == "transA" and a.i for a in node.attribute) else [-1]
    if node.op_type == "CumSum" and (axis := constants.get(node.input[1])) is not None:
        return [int(numpy_helper.to_array(axis).ravel()[0])]
    return None
