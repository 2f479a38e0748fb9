# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2025.4 makes of an attention of fixed sizes whose result is an output of the model, directly or behind elementwise operators.

It splits the queries in two where batch times heads do not fill the cores, and leaves the axis more in the output: (2, 2, 4) for (4, 4). Behind a
product over an axis of one element, which changes no value, the result has its axes. (Behind the larger of itself and itself it has them too, but the
process may end: with float16, or where the sum with another value follows.) Outputs of float16 have theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.across_nodes.apart import (
    flat_for,
    has_fixed_inputs,
    names_taken,
    unused,
    with_axes,
    written,
)
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import walked_of
from onnx_multi_backend.models.contents import Contents

_PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
#: What a Softmax may be written with.
_WEIGHTING = frozenset({"Exp", "Softmax"})
#: Since this opset ReduceProd has its axes as an input.
_AXES_AS_INPUT = 18
_SUFFIX = f"{CAST}attention"
_PASS, _CHANGE = "attention_outputs", "kept apart from what reads it"
_REASON = "OpenVINO would leave the result of an attention with an axis too many"


def attention_outputs(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these outputs are kept apart from the attention; None where there are none."""
    if not contents.has(_PRODUCTS) or not contents.has(_WEIGHTING) or not has_fixed_inputs(contents.model):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs, makers = walked.graphs, walked.makers
    kept_whole = {TensorProto.FLOAT16}
    outputs = [
        value.name for graph in graphs for value in graph.output if value.type.tensor_type.elem_type not in kept_whole
    ]
    ends = {
        node.output[0]
        for node in _before(outputs, makers)
        if node.op_type in _PRODUCTS and any(n.op_type in _WEIGHTING for n in _before(node.input, makers))
    }
    found = [
        {i: name for i, node in enumerate(graph.node) for name in node.output[:1] if name in ends} for graph in graphs
    ]
    if not any(found):
        return None
    opset, taken, changes = opset_versions(flat).get("", 1), names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, name: str, kept: dict[str, str]) -> Iterator[NodeProto]:
        changes.append(Adaptation(_PASS, f"{node.op_type} {node.name or name!r}", _CHANGE, _REASON))
        node.output[0], longer = unused(f"{name}{_SUFFIX}", taken), unused(f"{name}{_SUFFIX}_longer", taken)
        yield node
        yield from with_axes(node.output[0], longer, 1, opset)
        yield from _over_first(longer, name, node.output[0], opset)

    return written(flat, found, write, changes)


def _over_first(read: str, made: str, name: str, opset: int) -> list[NodeProto]:
    """The product over the first axis."""
    if opset < _AXES_AS_INPUT:
        return [helper.make_node("ReduceProd", [read], [made], name=name, axes=[0], keepdims=0)]
    axes = f"{name}_first"
    return [
        helper.make_node("Constant", [], [axes], name=axes, value_ints=[0]),
        helper.make_node("ReduceProd", [read, axes], [made], name=name, keepdims=0),
    ]


def _before(names: Collection[str], makers: Mapping[str, NodeProto]) -> Iterator[NodeProto]:
    """The nodes that values come through, up to products, which are among them."""
    seen: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in seen or (maker := makers.get(name)) is None:
            continue
        seen.add(name)
        yield maker
        if maker.op_type not in _PRODUCTS:
            todo += maker.input
