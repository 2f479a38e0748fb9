# SPDX-License-Identifier: Apache-2.0
"""Which values of a model may come to some of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from onnx import NodeProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies, nodes_in, subgraphs

#: Operators whose results hold none of the numbers that they read: shapes, truth values and positions.
_ENDS = frozenset("ArgMax ArgMin Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual NonZero Shape Size".split())

#: Operators that only move the numbers of their first input.
_MOVES = frozenset(
    "DepthToSpace Dropout Expand Flatten Gather Identity Pad Reshape Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze".split()
)


def computed_into(contents: Contents, readers: Collection[NodeProto]) -> frozenset[str]:
    """The values that some nodes read, and all that these are computed from."""
    return _behind(contents, readers, contents.nodes, _followed)


def infinities_into(contents: Contents, readers: Collection[NodeProto]) -> frozenset[str]:
    """The same of values whose infinities may come there: the highest that `Clip` allows is none of its results if that is inf."""
    return _behind(
        contents, readers, contents.nodes, lambda node: node.input[:2] if node.op_type == "Clip" else _followed(node)
    )


def moved_into(contents: Contents, readers: Collection[NodeProto]) -> frozenset[str]:
    """The values that some nodes read, and those whose numbers are only moved until they are read."""
    moves = [node for node in contents.nodes if node.op_type in _MOVES] if readers else []
    return _behind(contents, readers, moves, lambda node: node.input[:1])


def _behind(
    contents: Contents,
    readers: Collection[NodeProto],
    followed: Iterable[NodeProto],
    read_by: Callable[[NodeProto], Iterable[str]],
) -> frozenset[str]:
    """What nodes read, and what is read by those of `followed` behind each other that it comes from."""
    if not readers:
        return frozenset()
    if contents.model.functions:  # a name means something else in each
        return frozenset(name for node in contents.nodes for name in node.input)
    makers = {name: node for node in followed for name in node.output}
    given = {value.name: node for node in contents.holding for body in subgraphs(node) for value in body.input}
    waiting = [name for node in readers for name in node.input]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found or not name:
            continue
        found.add(name)
        if name in makers:
            waiting += read_by(makers[name])
        if name in given:
            waiting += given[name].input
    return frozenset(found)


def _followed(node: NodeProto) -> Iterable[str]:
    return () if node.op_type in _ENDS else _read_by(node)


def _read_by(node: NodeProto) -> Iterable[str]:
    """What a node reads, and what the nodes of its subgraphs read and make."""
    names = set(node.input)
    for body in bodies(node):
        names.update(value.name for value in body.output)
        names.update(name for inner in nodes_in(body.node) for name in inner.input)
    return names
