# SPDX-License-Identifier: Apache-2.0
"""Results that are known to have no elements: nothing has to be computed, and OpenVINO (2026.4) may end the process over some of them.

Seen with OneHot of no indices, which it computes while it loads a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper

from onnx_multi_backend.adapt.inference import infer
from onnx_multi_backend.engines.apart import put_back
from onnx_multi_backend.models.graph_walk import subgraphs
from onnx_multi_backend.models.tensors import numpy_dtype

_MADE = frozenset({"Constant", "ConstantOfShape"})


def without_computing(model: ModelProto, kinds: frozenset[int]) -> list[str]:
    """Have ConstantOfShape make such results, in place; the nodes that it takes the place of.

    Parameters
    ----------
    kinds : frozenset of int
        The element types that ConstantOfShape makes.
    """
    undeclared = ModelProto()
    undeclared.CopyFrom(model)
    for value in undeclared.graph.output:  # a name that is declared for a size would be kept
        value.type.tensor_type.ClearField("shape")
    typed = infer(undeclared).graph
    for value, told in zip(typed.output, model.graph.output, strict=True):
        if _is_empty(told.type, kinds):
            value.type.CopyFrom(told.type)
    return list(_graph(model.graph, typed, {}, kinds))


def _graph(
    graph: GraphProto, typed: GraphProto, outer: Mapping[str, TypeProto], kinds: frozenset[int]
) -> Iterator[str]:
    types = {**outer, **{v.name: v.type for v in (*typed.value_info, *typed.input, *typed.output)}}
    nodes: list[NodeProto] = []
    count = 0
    for node, known in zip(graph.node, typed.node, strict=True):
        wanted = [name for name in node.output if name]
        if node.op_type in _MADE or not wanted or not all(_is_empty(types.get(name), kinds) for name in wanted):
            for inner, inner_typed in zip(subgraphs(node), subgraphs(known), strict=True):
                yield from _graph(inner, inner_typed, types, kinds)
            nodes.append(node)
            continue
        count += 1
        for name in wanted:
            kind = types[name].tensor_type
            dims = numpy_helper.from_array(np.array([d.dim_value for d in kind.shape.dim], np.int64))
            zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(kind.elem_type)))
            nodes.append(helper.make_node("Constant", [], [f"{name}/omb_dims"], value=dims))
            nodes.append(helper.make_node("ConstantOfShape", [f"{name}/omb_dims"], [name], value=zero))
        yield f"{node.op_type} {node.name or wanted[0]!r}"
    if count:
        put_back(graph, nodes)


def _is_empty(found: TypeProto | None, kinds: frozenset[int]) -> bool:
    if found is None or found.tensor_type.elem_type not in kinds or not found.tensor_type.HasField("shape"):
        return False
    dims = found.tensor_type.shape.dim
    return all(d.HasField("dim_value") for d in dims) and any(d.dim_value == 0 for d in dims)
