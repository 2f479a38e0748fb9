# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements that a model holds, other than as lists of nothing: a shape, axes, pads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onnx import NodeProto, TensorProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs

#: Operators for which an empty input behind the first is one that is left out, or a list of nothing.
_PARAMETERS = frozenset(
    {
        "CenterCropPad",
        "DFT",
        "Expand",
        "Pad",
        "Reshape",
        "Resize",
        "Split",
        "Squeeze",
        "Tile",
        "Unsqueeze",
        "Upsample",
    }
)


def is_list(node: NodeProto, index: int) -> bool:
    """Whether a node takes an empty input at this place for a list of nothing, or for one that is left out."""
    if canonical(node.domain):
        return False
    if node.op_type == "ConstantOfShape":
        return True
    return index > 0 and (node.op_type in _PARAMETERS or node.op_type.startswith("Reduce"))


def values_of(node: NodeProto) -> Iterator[TensorProto]:
    """The tensor of a Constant."""
    if node.op_type == "Constant":
        yield from (a.t for a in node.attribute if a.name == "value")


def holds_empty_data(contents: Contents, is_empty: Callable[[TensorProto], bool]) -> bool:
    """Whether a model holds a tensor without elements that a node may take for more than a list, or returns one.

    Parameters
    ----------
    is_empty : callable
        Tells which tensors are meant.
    """
    if not any(is_empty(tensor) for tensor in contents.tensors):
        return False
    empty = {tensor.name for tensor in contents.tensors if is_empty(tensor)}
    empty.update(n.output[0] for n in contents.of("Constant") if any(is_empty(tensor) for tensor in values_of(n)))
    bodies = (body for node in contents.holding for body in subgraphs(node))
    results = {value.name for graph in (contents.model.graph, *bodies) for value in graph.output}
    results.update(name for function in contents.model.functions for name in function.output)
    return not results.isdisjoint(empty) or any(
        name in empty and not is_list(node, i)
        for node, read in zip(contents.nodes, contents.reads, strict=True)
        if not empty.isdisjoint(read)
        for i, name in enumerate(read)
    )
