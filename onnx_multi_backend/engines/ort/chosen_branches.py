# SPDX-License-Identifier: Apache-2.0
"""Ifs whose condition is known, with which ONNX Runtime must not compute constants beforehand (found by measuring).

Their branch takes the If's place then. In 1.24 constants of more than 127 bytes in it, given or computed beforehand, are lost: the model is refused,
or the process ends. Newer releases keep them (seen with 1.32). In all of them (1.24 to 1.32) another If, Loop or Scan in two such branches, one in
the other, loses values that it reads: a run fails, or building the session ends the process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set

from onnx import NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.walked import inner_first, tensor_types
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import nodes_in, subgraphs
from onnx_multi_backend.models.tensors import numpy_dtype

#: The optimizer that computes constants beforehand.
FOLDING = "ConstantFolding"
#: What may be known of an input whose shape is declared.
_SIZES = frozenset({"Shape", "Size"})
#: ONNX Runtime keeps constants of more bytes outside the graph; a string counts as many, whatever its length.
KEPT_INSIDE = 127
_STRING_BYTES = 32


def stored_bytes(elem_type: int) -> int:
    """How many bytes ONNX Runtime counts for an element of a constant."""
    return _STRING_BYTES if elem_type == TensorProto.STRING else numpy_dtype(elem_type).itemsize


def of_branches(contents: Contents) -> list[str]:
    """Those that must not see an If whose condition is known.

    In a branch there is a constant that is large or computed, or another such If with a node that holds graphs.
    """
    if not contents.has({"If"}):
        return []
    facts = Facts(contents.model, contents)
    return [FOLDING] if _loses_values(facts) or _loses_constants(facts) else []


def _loses_constants(facts: Facts) -> bool:
    if not applies({"onnxruntime": "<1.31"}):
        return False
    known = facts.known | facts.computed_of_constants
    seen: set[int] = set()
    for node in facts.contents.of("If"):  # an outer one comes before those in it
        if id(node) not in seen and (facts.model.functions or not known.isdisjoint(node.input)):
            inside = list(nodes_in([node]))
            if _hold_a_large_constant(inside) or _compute_a_large_constant(inside, facts):
                return True
            seen.update(map(id, inside))
    return False


def _hold_a_large_constant(inside: list[NodeProto]) -> bool:
    attributes = [a for each in inside if each.op_type == "Constant" for a in each.attribute]
    graphs = [graph for each in inside for graph in subgraphs(each)]
    sparse = [a.sparse_tensor for a in attributes if a.HasField("sparse_tensor")]
    sparse += [tensor for graph in graphs for tensor in graph.sparse_initializer]
    tensors = [a.t for a in attributes if a.HasField("t")]
    tensors += [tensor for graph in graphs for tensor in graph.initializer]
    sizes = [stored_bytes(tensor.data_type) * math.prod(tensor.dims) for tensor in tensors]
    sizes += [stored_bytes(tensor.values.data_type) * math.prod(tensor.dims) for tensor in sparse]
    sizes += [4 * len(a.floats) + 8 * len(a.ints) + _STRING_BYTES * len(a.strings) for a in attributes]
    return max(sizes, default=0) > KEPT_INSIDE


def _compute_a_large_constant(inside: list[NodeProto], facts: Facts) -> bool:
    """Whether nodes make more of constants; what a node that holds graphs reads is not known from its inputs."""
    of_constants = {id(node) for node in facts.nodes_of_constants if next(subgraphs(node), None) is None}
    made = {name for node in inside if id(node) in of_constants for name in node.output if name}
    if not made:
        return False
    sizes = dict.fromkeys(made, math.inf)
    for name, kind in tensor_types(inner_first(infer(facts.model).graph)).items():
        if name in made and kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            sizes[name] = stored_bytes(kind.elem_type) * math.prod(dim.dim_value for dim in kind.shape.dim)
    return max(sizes.values()) > KEPT_INSIDE


def _loses_values(facts: Facts) -> bool:
    """Whether two Ifs whose conditions may be known, one in a branch of the other, hold a node with graphs that may stay."""
    if len(facts.contents.holding) < 3:
        return False
    surely = facts.known | facts.computed_of_constants
    maybe = None if facts.model.functions else _known_at_load(facts)
    return any(
        next(subgraphs(holder), None) is not None and not _is_known(holder, surely)
        for node in facts.contents.of("If")
        if _is_known(node, maybe)
        for inner in _in_branches(node)
        if _is_known(inner, maybe)
        for holder in _in_branches(inner)
    )


def _in_branches(node: NodeProto) -> Iterator[NodeProto]:
    return (inner for graph in subgraphs(node) for inner in graph.node)


def _is_known(node: NodeProto, known: Set[str] | None) -> bool:
    """Whether it is an If whose condition is known when a session is built; None: any may be."""
    return node.op_type == "If" and (known is None or not known.isdisjoint(node.input))


def _known_at_load(facts: Facts) -> set[str]:
    """Constants, sizes, which are known where shapes are, and what is computed of them."""
    known = {"", *facts.known}
    types = tensor_types(inner_first(facts.model.graph))
    for node, read in zip(facts.contents.nodes, facts.contents.reads, strict=True):
        if node.op_type in _SIZES:
            is_known = any(name in known or not _is_open(types.get(name)) for name in read)
        else:
            is_known = known.issuperset(read) and any(read)
        if is_known:
            known.update(node.output)
    return known


def _is_open(kind: TypeProto.Tensor | None) -> bool:
    """Whether a size is not known before a run."""
    return kind is not None and kind.HasField("shape") and not all(d.HasField("dim_value") for d in kind.shape.dim)
