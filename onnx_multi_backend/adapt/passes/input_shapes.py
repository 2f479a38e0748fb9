# SPDX-License-Identifier: Apache-2.0
"""The shapes that the user asks for, written into the model: an engine then knows more before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto

from onnx_multi_backend.adapt.work import Adaptation
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.models.graph_walk import all_nodes, defaults_of, subgraphs

#: A size for each dimension, None for one that stays as it is.
Shape = tuple["int | None", ...]


def with_input_shapes(
    model: ModelProto, wanted: Mapping[str, Shape], label: str
) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model whose inputs have these shapes, and the record of that.

    A symbolic dimension gets its size wherever its name stands.

    Raises
    ------
    OptionError
        The model has no such input, or the shape contradicts the declared one or another input's.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    defaults = defaults_of(copy.graph)
    inputs = {value.name: value for value in copy.graph.input if value.name not in defaults}
    if unknown := [name for name in wanted if name not in inputs]:
        raise OptionError(
            f"input_shapes: {label} has no input {', '.join(map(repr, unknown))}; it has {', '.join(map(repr, inputs)) or 'none'}."
        )
    named: dict[str, int] = {}
    changes = []
    for name, shape in wanted.items():
        _fix(inputs[name], shape, named, label)
        text = ", ".join("?" if size is None else str(size) for size in shape)
        changes.append(Adaptation("input_shapes", f"input {name}", f"has shape [{text}]", "input_shapes asks for it"))
    if named:
        for graph in (copy.graph, *(inner for node in all_nodes(copy) for inner in subgraphs(node))):
            _replace(graph, named)
    return copy, tuple(changes)


def _fix(value: ValueInfoProto, wanted: Shape, named: dict[str, int], label: str) -> None:
    if not value.type.HasField("tensor_type"):
        raise OptionError(f"input_shapes: input {value.name!r} of {label} is not a tensor, and has no shape.")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        tensor.shape.SetInParent()
        for _ in wanted:
            tensor.shape.dim.add()
    declared = [_declared(d) for d in tensor.shape.dim]
    if len(wanted) != len(declared):
        raise OptionError(
            f"input_shapes: input {value.name!r} of {label} has {len(declared)} dimensions {declared}; {list(wanted)} has "
            f"{len(wanted)}."
        )
    for axis, (size, known, dim) in enumerate(zip(wanted, declared, tensor.shape.dim, strict=True)):
        if size is None:
            continue
        expected = named.setdefault(known, size) if isinstance(known, str) else known
        if expected not in (None, size):
            raise OptionError(
                f"input_shapes: dimension {axis} of input {value.name!r} of {label} is {expected}"
                f"{f' ({known!r} stands at another input too)' if isinstance(known, str) else ''}; {size} was given."
            )
        dim.dim_value = size


def _declared(dim: TensorShapeProto.Dimension) -> int | str | None:
    """Its size or name; None where it is open. Exporters write that as -1 too, or as the name ``?``, which then stands for many sizes."""
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return None if dim.dim_param in ("", "?") else dim.dim_param


def _replace(graph: GraphProto, named: Mapping[str, int]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in named:
                dim.dim_value = named[dim.dim_param]
