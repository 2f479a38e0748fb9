# SPDX-License-Identifier: Apache-2.0
"""Loops whose bodies read the outer graph, on OpenVINO's execution provider as ONNX Runtime was built with it until 1.24.

The provider takes a Loop that carries values of known rank, and cannot read outer values. Mostly it says so; where the condition is a
constant, as PyTorch writes it, and in what TensorFlow's while loops become, it ends the process. A Loop that carries values of unknown
rank, or text, is left to the CPU. An If that holds such a loop, or such a Scan, may end the process as well, unless it makes a text.
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.models.graph_walk import canonical, nodes_in, subgraphs

#: The operators whose bodies are run again and again.
LOOPS = frozenset({"Loop", "Scan"})


def loop_in_branch(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """If that makes no text, with a loop in a branch whose body reads the outer graph."""
    if node.op_type != "If" or canonical(node.domain):
        return None
    made = (value.type.tensor_type.elem_type for graph in subgraphs(node) for value in graph.output)
    if TensorProto.STRING in made:
        return None
    inside = (body for inner in nodes_in([node]) if inner.op_type in LOOPS for body in subgraphs(inner))
    return "a body in a branch reads the outer graph" if any(map(reads_outer, inside)) else None


def outer_reads(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Loop that carries values of known rank, and whose body reads the outer graph."""
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    if body is None or carries_text(body) or not all(v.type.tensor_type.HasField("shape") for v in body.input[2:]):
        return None
    return "its body reads the outer graph" if reads_outer(body) else None


def carries_text(body: GraphProto) -> bool:
    """Whether a state of a loop is text."""
    return any(value.type.tensor_type.elem_type == TensorProto.STRING for value in body.input)


def reads_outer(body: GraphProto) -> bool:
    """Whether a body, or a graph in it, reads a value that is not made in it."""
    nodes = list(nodes_in(body.node))
    inner = {name for node in nodes for name in node.output} | {""}
    for graph in (body, *(inside for node in nodes for inside in subgraphs(node))):
        inner |= {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    return any(name not in inner for node in nodes for name in node.input)
