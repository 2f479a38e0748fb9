# SPDX-License-Identifier: Apache-2.0
"""Around what the OpenVINO execution provider makes of integers that are reduced and then added to a constant, or multiplied by one.

It has the reduction compute both, which gives numbers that have nothing to do with the input.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import GraphProto, ModelProto, NodeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.intervals.ranges import Nested, ranges
from onnx_multi_backend.adapt.names import CAST, LEFT
from onnx_multi_backend.adapt.operation import Values
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.engines.across_nodes.apart import larger
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, nodes_in, put_back
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

REDUCTIONS = frozenset(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Size".split()
)

#: Since this opset Max takes integers.
_MAX_OF_INTEGERS = 12


def reduced_alone(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the larger of a value and itself, which is that value, behind each reduction of integers that is read.

    Before Max took integers, twice the value without the value is written.
    """
    model, facts = payload.adapted.proto, payload.adapted.facts
    reductions = [node for node in facts.contents.nodes if _reduces(node)]
    if not reductions or (facts.floats | _ranks(facts, reductions)).issuperset(node.output[0] for node in reductions):
        return payload, ()
    if expands_too_far(model):
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    nested: Nested = {}
    values = ranges(copy.graph, nested=nested)
    opset = opset_versions(copy).get("", 1)
    ranks = _ranks(Facts(copy), filter(_reduces, all_nodes(copy)))
    added: set[str] = set()
    for graph, told in [*nested.values(), (copy.graph, values)]:  # a node of a graph is copied with its subgraphs
        added |= _separate(graph, told, opset, ranks)
    if not added:
        return payload, ()
    change = Adaptation(
        "reduced_alone",
        "",
        f"nodes without effect behind reductions of integers ({len(added)})",
        "the OpenVINO execution provider merges a reduction with the arithmetic behind it, and computes that wrongly",
    )
    return payload.changed(copy, change, inserted=added), (change,)


def _reduces(node: NodeProto) -> bool:
    mine = LEFT in str(node.name)
    return node.op_type in REDUCTIONS and not canonical(node.domain) and bool(node.output) and not mine


def _ranks(facts: Facts, reductions: Iterable[NodeProto]) -> set[str]:
    """The sizes of shapes, which are known before anything runs."""
    return {node.output[0] for node in reductions if node.op_type == "Size" and facts.shapes.issuperset(node.input)}


def _separate(graph: GraphProto, values: Values, opset: int, known: set[str]) -> set[str]:
    """Do so in one graph, but for what is `known` before anything runs; the names of the nodes put in."""
    read = {name for node in nodes_in(graph.node) for name in node.input} - known
    nodes: list[NodeProto] = []
    added: set[str] = set()
    for node in graph.node:
        nodes.append(node)
        found = values.get(node.output[0]) if _reduces(node) else None
        if found is None or found.elem_type not in INTEGER_BITS or node.output[0] not in read:
            continue
        made = node.output[0]
        node.output[0] = alone = f"{made}{CAST}alone"
        if opset >= _MAX_OF_INTEGERS:
            nodes.append(larger(alone, made, name=alone))
        else:
            twice = f"{alone}_twice"
            nodes.append(helper.make_node("Add", [alone, alone], [twice], name=twice))
            nodes.append(helper.make_node("Sub", [twice, alone], [made], name=alone))
            added.add(twice)
        added.add(alone)
    if added:
        put_back(graph, nodes)
    return added
