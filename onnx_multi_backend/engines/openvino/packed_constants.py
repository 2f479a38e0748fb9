# SPDX-License-Identifier: Apache-2.0
"""Operators on constants of 4-bit elements: OpenVINO computes them while it compiles a model, and writes beyond their memory.

It takes a byte for each element, two of which share one (SIGABRT or SIGSEGV at once; seen with 2026.4.1 for each operator here).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, subgraphs
from onnx_multi_backend.models.inlining import inlined

_MOVED = frozenset({"DepthToSpace", "Expand", "Pad", "SpaceToDepth", "Split", "Tile"})
_INDEXED = frozenset({"Concat", "Gather", "GatherElements", "GatherND", "Slice", "Transpose"})
#: By type, what breaks the memory. Of integers of 4 bits OpenVINO computes some rightly, and refuses a Transpose.
_BREAKING: Mapping[int, frozenset[str]] = {
    TensorProto.FLOAT4E2M1: _MOVED | _INDEXED,
    TensorProto.INT4: _MOVED,
    TensorProto.UINT4: _MOVED,
}
#: What makes wider elements: of a Transpose it reads, OpenVINO moves those.
_WIDENING = frozenset({"Cast", "DequantizeLinear"})
#: What hands on the elements of its first input, or one of its inputs, as they are.
_PASSING = _MOVED | _INDEXED | {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}


def moved(contents: Contents) -> list[tuple[NodeProto, str]]:
    """The nodes that move elements of such constants, and why that ends the process."""
    if not contents.has(_MOVED | _INDEXED) or not _holds_packed(contents):
        return []
    flat = inlined(contents.model)
    return list(_within(flat.graph, {}))


def _holds_packed(contents: Contents) -> bool:
    stored = not contents.tensor_types.isdisjoint(_BREAKING)
    return stored or any(_kind_made(node) in _BREAKING for node in contents.of("Cast"))


def _kind_made(node: NodeProto) -> int:
    """The element type that a Constant or a Cast makes; 0 where it is not seen."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return _kind_held(attribute.t)
        if attribute.name == "to":
            return attribute.i
    return 0


def _kind_held(tensor: TensorProto) -> int:
    """The element type of a tensor; 0 where it has no elements, which are moved without harm."""
    return 0 if 0 in tensor.dims else tensor.data_type


def _within(graph: GraphProto, outer: Mapping[str, int]) -> Iterator[tuple[NodeProto, str]]:
    """Of a graph and its subgraphs; `outer` has the type of what is known outside, 0 for one that is not packed."""
    known = {**outer, **{tensor.name: _kind_held(tensor) for tensor in graph.initializer}}
    for value in graph.input:  # a run may give another
        known.pop(value.name, None)
    kept = _read_as_they_are(graph)
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _within(inner, known)
        if canonical(node.domain) or not all(name in known for name in node.input if name):
            continue
        kind = _kind_of(node, known)
        if kind is None:
            continue
        if node.op_type in _BREAKING.get(kind, ()) and (node.op_type != "Transpose" or _is_done(node, kept)):
            yield node, "it moves elements of 4 bits of a constant, for which OpenVINO takes too little memory"
        known.update((name, kind) for name in node.output if name)


def _kind_of(node: NodeProto, known: Mapping[str, int]) -> int | None:
    """The type of what is made of constants; None where the node is not one that is followed."""
    if node.op_type in ("Constant", "Cast"):
        return _kind_made(node)
    return known[node.input[0]] if node.op_type in _PASSING and node.input else None


def _read_as_they_are(graph: GraphProto) -> frozenset[str]:
    """The values that something reads in their own type, an output and a subgraph included."""
    read = {value.name for value in graph.output}
    for node in graph.node:
        read.update(name for inner in subgraphs(node) for held in nodes_in(inner.node) for name in held.input)
        if node.op_type not in _WIDENING:
            read.update(node.input)
    return frozenset(read)


def _is_done(node: NodeProto, kept: frozenset[str]) -> bool:
    """Whether OpenVINO computes a Transpose: not one that moves nothing, and a Cast behind it is done first."""
    order = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
    return (order is None or order != sorted(order)) and not kept.isdisjoint(node.output)
