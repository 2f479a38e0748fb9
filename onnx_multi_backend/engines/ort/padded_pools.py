# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2025.4 makes of zeros around the input of MaxPool: it takes the Pad for MaxPool's padding, where zeros do not count."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import Facts, inlined
from onnx_multi_backend.engines.apart import inner_first, larger, put_back
from onnx_multi_backend.models.graph_walk import all_nodes, canonical
from onnx_multi_backend.models.plausible import expands_too_far

_REASON = "OpenVINO would take the Pad for the padding of MaxPool, where zeros do not count"


def zeros_count(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...], frozenset[str]]:
    """A copy of the model with the larger of a value and itself, which is that value, between each Pad and a MaxPool.

    The model itself where there are none.

    Returns
    -------
    model : onnx.ModelProto
    changes : tuple of Adaptation
    added : frozenset of str
        The names of the nodes that are new.
    """
    if not {node.op_type for node in all_nodes(model)} >= {"MaxPool", "Pad"} or expands_too_far(model):
        return model, (), frozenset()
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    floats = Facts(copy).floats
    added: dict[str, str] = {}
    for graph in inner_first(copy.graph):
        padded = {
            node.output[0] for node in graph.node if node.op_type == "Pad" and not canonical(node.domain)
        } & floats
        nodes: list[NodeProto] = []
        for node in graph.node:
            if node.op_type == "MaxPool" and not canonical(node.domain) and node.input[0] in padded:
                name = f"{node.output[0]}{CAST}padded"
                added[name] = f"MaxPool {node.name or node.output[0]!r}"
                nodes.append(larger(node.input[0], name))
                node.input[0] = name
            nodes.append(node)
        put_back(graph, nodes)
    changes = tuple(Adaptation("padded_pools", where, "zeros are kept apart", _REASON) for where in added.values())
    return (copy, changes, frozenset(added)) if added else (model, (), frozenset())
