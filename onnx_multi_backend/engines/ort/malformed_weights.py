# SPDX-License-Identifier: Apache-2.0
"""LSTMs whose constant weights have no elements, or not three axes: ONNX Runtime 1.24 packs them while it builds a session, and dies of that when it runs.

Newer releases say so in words.
"""

from __future__ import annotations

from onnx import NodeProto

from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

#: The directions, the gates, and what they read.
_AXES = 3


def malformed_weights(contents: Contents) -> list[tuple[NodeProto, str]]:
    """Such nodes; where a name stands for several tensors, none of them is right."""
    nodes = [node for node in contents.of("LSTM") if not canonical(node.domain)]
    if not nodes or not applies({"onnxruntime": "<1.32"}):
        return []
    wanted = {name for node in nodes for name in node.input[1:3]} - {value.name for value in contents.model.graph.input}
    shapes = [(name, tensor.dims) for name, tensor in contents.named if name in wanted]
    odd = {name for name, dims in shapes if len(dims) != _AXES or 0 in dims}
    odd -= {name for name, dims in shapes if len(dims) == _AXES and 0 not in dims}
    return [
        (node, "its constant weights have no elements, or not three axes")
        for node in nodes
        if not odd.isdisjoint(node.input[1:3])
    ]
