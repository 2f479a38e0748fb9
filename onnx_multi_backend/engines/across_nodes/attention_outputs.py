# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2025.4 makes of an attention of fixed sizes whose result is an output of the model, directly or behind elementwise operators.

It splits the queries in two where batch times heads do not fill the cores, and leaves the axis more in the output: (2, 2, 4) for (4, 4). Where
the result is the larger of a value and itself, which is that value, it has its axes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import GraphProto, NodeProto, ValueInfoProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.across_nodes.apart import FLOATS, flat_for, has_fixed_inputs, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import walked_of
from onnx_multi_backend.models.contents import Contents

_PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
#: What a Softmax may be written with.
_WEIGHTING = frozenset({"Exp", "Softmax"})
_REASON = "OpenVINO would leave the result of an attention with an axis too many"


def attention_outputs(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these outputs are kept apart from the attention; None where there are none."""
    if not contents.has(_PRODUCTS) or not contents.has(_WEIGHTING) or not has_fixed_inputs(contents.model):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs, makers = walked.graphs, walked.makers

    def is_found(value: ValueInfoProto) -> bool:
        return value.type.tensor_type.elem_type in FLOATS and any(
            node.op_type in _PRODUCTS and any(n.op_type in _WEIGHTING for n in _before(node.input, makers))
            for node in _before([value.name], makers)
        )

    found = [_places(graph, {value.name for value in graph.output if is_found(value)}) for graph in graphs]
    return outputs_apart(flat, found, f"{CAST}attention", "attention_outputs", _REASON)


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


def _places(graph: GraphProto, outputs: Collection[str]) -> dict[int, list[int]]:
    """The places of outputs by that of their node."""
    places = {i: [j for j, name in enumerate(node.output) if name in outputs] for i, node in enumerate(graph.node)}
    return {i: found for i, found in places.items() if found}
