# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements that a model holds, other than as lists of nothing (a shape, axes, pads), or cuts out of others by constants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.tensors import is_whole

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

#: Operators that a 0 in this input, or in this attribute, leaves without elements, or a part of their results.
_SIZED = {"ConstantOfShape": (0, ""), "Expand": (1, ""), "Split": (1, "split"), "Tile": (1, ""), "TopK": (1, "")}


#: A bound from which on it is the end of an axis, whatever its size.
_END = 2**31 - 1


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


def holds_empty_data(contents: Contents, is_meant: Callable[[TensorProto], bool] = lambda tensor: True) -> bool:
    """Whether a model holds a tensor without elements that a node may take for more than a list, or returns one.

    Parameters
    ----------
    is_meant : callable
        Tells which of these tensors count.
    """
    if not any(map(is_meant, contents.empty_tensors)):
        return False
    empty = {tensor.name for tensor in contents.empty_tensors if is_meant(tensor)}
    empty.update(
        node.output[0]
        for node in contents.of("Constant")
        if any(0 in tensor.dims and is_meant(tensor) for tensor in values_of(node))
    )
    return not _results(contents).isdisjoint(empty) or any(
        name in empty and not is_list(node, i)
        for node, read in zip(contents.nodes, contents.reads, strict=True)
        if not empty.isdisjoint(read)
        for i, name in enumerate(read)
    )


def _read_as_data(contents: Contents) -> set[str]:
    """The values that are results, or that a node takes for more than a list, or a part of one."""
    return _results(contents) | {
        name
        for node, read in zip(contents.nodes, contents.reads, strict=True)
        for i, name in enumerate(read)
        if not is_list(node, i) and (node.op_type != "Concat" or canonical(node.domain))
    }


def _results(contents: Contents) -> set[str]:
    """What the graphs and functions of a model return."""
    bodies = (body for node in contents.holding for body in subgraphs(node))
    results = {value.name for graph in (contents.model.graph, *bodies) for value in graph.output}
    return results | {name for function in contents.model.functions for name in function.output}


def cut_to_nothing(contents: Contents, constants_of: Callable[[Collection[str]], Mapping[str, TensorProto]]) -> bool:
    """Whether constants tell a Slice from a place to the same, or a size, number or repetition of 0.

    Sizes of a shape that are put together with others, or read as a list, do not count.

    Parameters
    ----------
    constants_of : callable
        Gives the small tensors of these names.
    """
    cuts = [node for node in contents.of("Slice", *_SIZED) if not canonical(node.domain)]
    constants = constants_of({name for node in cuts for name in (*_sizes(node), *node.input[1:]) if name})

    def numbers(node: NodeProto, place: int, attribute: str) -> list[int] | None:
        if len(node.input) > min(place, 1):
            tensor = constants.get(node.input[place]) if place < len(node.input) else None
            # It may be a text: a function's own value of that name.
            if tensor is None or not is_whole(tensor) or tensor.data_type == TensorProto.STRING:
                return None
            return numpy_helper.to_array(tensor).ravel().tolist()
        return next((list(a.ints) for a in node.attribute if a.name == attribute), None)

    def is_cut(node: NodeProto) -> bool:
        if node.op_type in _SIZED:
            return 0 in (numbers(node, *_SIZED[node.op_type]) or ())
        bounds = zip(numbers(node, 1, "starts") or (), numbers(node, 2, "ends") or (), strict=False)
        steps = numbers(node, 4, "steps") or []
        return any(
            (start < 0 <= end < _END)
            or ((start < 0) == (end < 0) and (start <= end if i < len(steps) and steps[i] < 0 else start >= end))
            for i, (start, end) in enumerate(bounds)
        )

    return _counts(contents, [node for node in cuts if is_cut(node)])


def _sizes(node: NodeProto) -> list[str]:
    """The first input, where that tells sizes."""
    return list(node.input[:1]) if node.op_type == "ConstantOfShape" else []


def _counts(contents: Contents, cut: list[NodeProto]) -> bool:
    """Whether one of the nodes that leave nothing makes more than a list of no sizes."""
    lists = {name for node in contents.of("Shape") if not canonical(node.domain) for name in node.output}

    def may_be_a_list(node: NodeProto) -> bool:
        """Of sizes, or of no pads as PyTorch writes them."""
        return node.op_type == "ConstantOfShape" or (node.op_type == "Slice" and not lists.isdisjoint(node.input[:1]))

    if not all(map(may_be_a_list, cut)):
        return True
    return bool(cut) and not _read_as_data(contents).isdisjoint(name for node in cut for name in node.output)
