# SPDX-License-Identifier: Apache-2.0
"""Nodes with graphs in which a node is left to the CPU provider, on OpenVINO's built-in provider (1.24.1).

It looks at no node in the branches of an If, or in the body of a Loop, that it takes. So these are left as well: see `left_to_cpu`. A Scan it never takes.
"""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import LEFT
from onnx_multi_backend.engines.apart import put_back
from onnx_multi_backend.engines.ort.left_to_cpu import carry_text, make_text, unused_prefix
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import nodes_in, subgraphs

_TAKEN = frozenset({"If", "Loop"})


def left_around(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the Ifs and Loops left that hold a node to be left."""
    contents = payload.adapted.facts.contents
    if not any(map(_is_left, contents.nodes)) or not any(map(_is_left_within, contents.of(*_TAKEN))):
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    count = _leave(copy.graph, unused_prefix(copy, "omb_around"), 0)
    change = Adaptation(
        "left_to_cpu",
        "",
        f"a state or output of text added ({count})",
        "the OpenVINO execution provider takes all that is in a node, what is left to the CPU included",
    )
    return payload.changed(copy, change, inserted=set()), (change,)


def _is_left(node: NodeProto) -> bool:
    return LEFT in str(node.name)


def _is_left_within(node: NodeProto) -> bool:
    """Whether a node is taken though one in it is to be left."""
    return not _is_left(node) and any(map(_is_left, nodes_in([node])))


def _leave(graph: GraphProto, prefix: str, count: int) -> int:
    """Do so in a graph and its subgraphs, and count the nodes."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type in _TAKEN and _is_left_within(node):
            for inner in subgraphs(node):
                count = _leave(inner, prefix, count)
            count += 1
            if node.op_type == "If":
                make_text(node, f"{prefix}{count}")
            else:
                nodes.append(carry_text(node, f"{prefix}{count}"))
        nodes.append(node)
    put_back(graph, nodes)
    return count
