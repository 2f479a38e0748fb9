# SPDX-License-Identifier: Apache-2.0
"""Pass: before opset 7, align the second operand of a comparison, a power or a logical operator with the axis that an attribute names.

OpenVINO reads these operators and not that attribute (2025.4, 2026.4), of arithmetic it reads both; and what takes their place knows the
newer broadcasting alone. Source: ``Operators.md`` of these opsets.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, helper

from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.work import Adaptation, Work
from onnx_multi_backend.models.graph_walk import canonical, put_back, subgraphs

#: Since this opset operands broadcast from the right, as numpy's do.
_BROADCASTS = 7
OPERATORS = frozenset({"Equal", "Greater", "Less", "Or", "Pow", "Xor"})
_REASON = "before opset 7 its last axis need not stand below the last of the first operand"


def broadcast_axes(work: Work) -> None:
    """Give the second operand axes of size 1 behind its own, where both ranks are known."""
    opset = opset_versions(work.model).get("", 1)
    if not any(names_axis(node, opset) for node in work.contents.nodes):
        return
    typed = infer(work.model)
    _align(work, work.edit().graph, typed.graph, {}, opset)


def names_axis(node: NodeProto, opset: int) -> bool:
    """Whether a node's second operand is aligned by an attribute."""
    if opset >= _BROADCASTS or node.op_type not in OPERATORS or canonical(node.domain):
        return False
    given = {attribute.name: attribute.i for attribute in node.attribute}
    return bool(given.get("broadcast", 0)) and "axis" in given


def _align(work: Work, graph: GraphProto, typed: GraphProto, outer: Mapping[str, int], opset: int) -> None:
    """Do so in a graph and its subgraphs; `typed` is the same with the types of its values."""
    ranks = dict(outer) | {tensor.name: len(tensor.dims) for tensor in typed.initializer}
    for value in (*typed.input, *typed.value_info, *typed.output):
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    nodes: list[NodeProto] = []
    for node, with_types in zip(graph.node, typed.node, strict=True):
        for inner, inner_typed in zip(subgraphs(node), subgraphs(with_types), strict=True):
            _align(work, inner, inner_typed, ranks, opset)
        if names_axis(node, opset) and len(node.input) > 1 and all(name in ranks for name in node.input[:2]):
            first, second = (ranks[name] for name in node.input[:2])
            axis = next(a.i for a in node.attribute if a.name == "axis")
            behind = first - (axis + first if axis < 0 else axis) - second
            if behind >= 0:
                nodes += _aligned(work, node, second, behind)
        nodes.append(node)
    put_back(graph, nodes)


def _aligned(work: Work, node: NodeProto, rank: int, behind: int) -> list[NodeProto]:
    """The node that gives the second operand so many axes more, which `node` reads; none where it has them all."""
    where = node.name or f"{node.op_type} (output {node.output[0]!r})"
    kept = [attribute for attribute in node.attribute if attribute.name != "axis"]
    del node.attribute[:]
    node.attribute.extend(kept)
    if not behind:
        return []
    name = f"{node.output[0]}/omb_aligned"
    added = helper.make_node("Unsqueeze", [node.input[1]], [name], name=name, axes=[*range(rank, rank + behind)])
    node.input[1] = name
    work.inserted.add(name)
    work.changes.append(Adaptation("broadcast_axes", where, f"its second operand gets {behind} axes more", _REASON))
    return [added]
