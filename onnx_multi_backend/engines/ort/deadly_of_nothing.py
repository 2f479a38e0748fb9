# SPDX-License-Identifier: Apache-2.0
"""Nodes that end ONNX Runtime's process over a tensor that is known to have no elements (found by measuring).

What is known to make none itself is left out of a model before; see `engines/made_empty.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.engines.across_nodes.walked import tensor_types, walked_of
from onnx_multi_backend.host.applies import When, applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_EVER = ("ConvTranspose", "GRU", "LSTM", "STFT")
#: Whatever it is that has no elements.
_ANY_BEFORE_1_32 = (
    "Einsum",
    "GatherND",
    "LRN",
    "LpNormalization",
    "MaxPool",
    "OneHot",
    "TensorScatter",
    "TopK",
    "Unique",
)
_BEFORE_1_32 = (*_ANY_BEFORE_1_32, "Attention", "DFT")
_OLDER: When = {"onnxruntime": "<1.32"}
#: The axes of a tensor of heads, and of a batch of volumes.
_HEADS, _VOLUMES = 4, 5


def of_nothing(contents: Contents) -> list[tuple[NodeProto, str]]:
    """Such nodes, where a graph input or a value is declared without elements."""
    if not contents.has({*_EVER, *_BEFORE_1_32}) or not _declares_nothing(contents):
        return []
    types = tensor_types(walked_of(contents).typed_graphs)
    shapes = {
        name: [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim] for name, kind in types.items()
    }
    empty = {name: shape for name, shape in shapes.items() if 0 in shape}
    nodes = [node for node in contents.of(*_EVER, *_BEFORE_1_32) if not canonical(node.domain)]
    return [(node, "its input has no elements") for node in nodes if _dies(node, empty)]


def _declares_nothing(contents: Contents) -> bool:
    graph = contents.model.graph
    dims = (d for v in (*graph.input, *graph.value_info) for d in v.type.tensor_type.shape.dim)
    return any(d.HasField("dim_value") and not d.dim_value for d in dims)


def _dies(node: NodeProto, empty: Mapping[str, Sequence[int]]) -> bool:
    if node.op_type in _BEFORE_1_32 and not applies(_OLDER):
        return False
    if node.op_type in _ANY_BEFORE_1_32:
        return not empty.keys().isdisjoint(node.input)
    if node.op_type == "Attention":
        return 0 in [empty[name][1] for name in node.input[:3] if len(empty.get(name, ())) == _HEADS]
    if node.op_type == "STFT":  # without a window
        return not empty.keys().isdisjoint(node.input[2:3])
    sizes = empty.get(node.input[0]) if node.input else None
    if sizes is None or node.op_type == "GRU":
        return sizes is not None
    if node.op_type == "DFT":
        axis = next((a.i for a in node.attribute if a.name == "axis"), None)
        return 0 in (sizes[1:] if axis is None else sizes[axis : axis + 1])
    if node.op_type == "ConvTranspose":
        if applies(_OLDER):
            return 0 in sizes[2:]
        return len(sizes) == _VOLUMES and 0 in sizes[2:4] and 0 not in (sizes[1], sizes[4])
    batch = 0 if any(a.name == "layout" and a.i for a in node.attribute) else 1
    return len(sizes) > batch and sizes[batch] == 0
