# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a constant that is added along another axis than the scales of quantized values.

Its low-precision transformations move the scales, which are along the channels, behind the addition, and divide the constant by them. One that has
as many elements as there are channels is taken for theirs, whatever its axis. No scale is moved behind the larger of a value and itself, which is
that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onnx import GraphProto, NodeProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_ADDING = frozenset({"Add", "Mean", "Sub", "Sum"})
_SCALING = frozenset({"Div", "Mul"})
_REASON = "OpenVINO would take the constant for one along the channels, as which it has as many elements"


def terms_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these values are kept apart from scales before them; None where there are none."""
    if not contents.has({"DequantizeLinear"}) or not contents.has(_ADDING) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs, constants = walked.graphs, walked.fixed

    def vector(name: str) -> tuple[int, int] | None:
        """The axis, counted from the last one, and the size of a constant that has several elements along this axis alone."""
        if name not in constants or _is_integer(walked.declared.get(name)):  # no scales are
            return None
        tensor = constants[name]
        if tensor is None and (kind := walked.told(name)) is not None:
            sizes = [dim.dim_value for dim in kind.shape.dim]
        else:
            sizes = list(tensor.dims) if tensor is not None else []
        several = [(i, size) for i, size in enumerate(reversed(sizes)) if size != 1]
        return several[0] if len(several) == 1 else None

    if not (scales := _several_scales(graphs, vector)):
        return None
    terms = [
        {
            place: axes
            for place, node in enumerate(graph.node)
            if node.op_type in _ADDING and not canonical(node.domain)
            if (axes := [axis for axis in map(vector, node.input) if axis is not None and axis[1] in scales])
        }
        for graph in graphs
    ]
    if not any(terms):
        return None
    scaled = Scaled(walked)

    def inputs(node: NodeProto, axes: Sequence[tuple[int, int]]) -> list[int]:
        read = [(i, name) for i, name in enumerate(node.input) if name not in constants and scaled(name)]
        return [i for i, name in read if any(_is_taken(walked.types.get(name), *axis) for axis in axes)]

    found = [
        {place: places for place, axes in own.items() if (places := inputs(graph.node[place], axes))}
        for graph, own in zip(graphs, terms, strict=True)
    ]
    change = "kept apart from scales before it"
    return inputs_apart(flat, found, f"{CAST}term", "terms_apart", change, _REASON)


def _several_scales(graphs: Iterable[GraphProto], vector: Callable[[str], tuple[int, int] | None]) -> set[int]:
    """How many scales there are where there are several of one axis, those included that are multiplied by or divided by."""
    held = [
        name
        for graph in graphs
        for node in graph.node
        if not canonical(node.domain)
        for name in (node.input[1:2] if node.op_type == "DequantizeLinear" else node.input)
        if node.op_type == "DequantizeLinear" or node.op_type in _SCALING
    ]
    return {axis[1] for axis in map(vector, held) if axis is not None}


def _is_integer(kind: TypeProto.Tensor | None) -> bool:
    return kind is not None and kind.elem_type in INTEGER_BITS


def _is_taken(kind: TypeProto.Tensor | None, axis: int, size: int) -> bool:
    """Whether a constant along an axis, counted from the last one, is taken for one along the channels of a value of a type."""
    if kind is None or not kind.HasField("shape") or len(kind.shape.dim) < 2:
        return True
    channels = kind.shape.dim[1]
    if axis == len(kind.shape.dim) - 2:
        return False
    return channels.dim_value == size or (len(kind.shape.dim) == 2 and not channels.HasField("dim_value"))
