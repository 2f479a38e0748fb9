# SPDX-License-Identifier: Apache-2.0
"""Loops whose bodies read the outer graph, on OpenVINO's execution provider as ONNX Runtime was built with it until 1.24.

The provider takes a Loop that carries values of known rank, and cannot read outer values. Mostly it says so; where the condition is a
constant, as PyTorch writes it, and in what TensorFlow's while loops become, it ends the process. A Loop that carries values of unknown
rank is left to the CPU.
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto

from onnx_multi_backend.models.graph_walk import nodes_in, subgraphs


def outer_reads(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Loop that carries values of known rank, and whose body reads the outer graph."""
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    if body is None or not all(v.type.tensor_type.HasField("shape") for v in body.input[2:]):
        return None
    return "its body reads the outer graph" if _reads_outer(body) else None


def _reads_outer(body: GraphProto) -> bool:
    nodes = list(nodes_in(body.node))
    inner = {name for node in nodes for name in node.output} | {""}
    for graph in (body, *(inside for node in nodes for inside in subgraphs(node))):
        inner |= {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    return any(name not in inner for node in nodes for name in node.input)
