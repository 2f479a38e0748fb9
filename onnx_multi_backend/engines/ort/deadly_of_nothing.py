# SPDX-License-Identifier: Apache-2.0
"""Nodes that end ONNX Runtime's process over a tensor that is known to have no elements (found by measuring).

What is known to make none itself is left out of a model before; see `engines/made_empty.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.walked import tensor_types, walked_of
from onnx_multi_backend.engines.ort.empty_values import CONTRIB
from onnx_multi_backend.host.applies import When, applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import has_zero

_EVER = ("ConvTranspose", "Einsum", "GRU", "LSTM", "Loop", "STFT", "Unique")
_BEFORE_1_32 = ("Attention", "DFT", "LRN", "LpNormalization", "MaxPool", "OneHot", "TensorScatter", "TopK")
_KNOWN = frozenset({*_EVER, *_BEFORE_1_32, *CONTRIB})
_OLDER: When = {"onnxruntime": "<1.32"}
#: The axes of a tensor of heads, a batch of images and one of volumes.
_HEADS, _IMAGES, _VOLUMES = 4, 4, 5


def of_nothing(contents: Contents) -> list[tuple[NodeProto, str]]:
    """Such nodes, where a graph input or a value is declared without elements, or constants cut one to none."""
    if not contents.has(_KNOWN) or not (_declares_nothing(contents) or Facts(contents.model, contents).may_be_empty):
        return []
    types = tensor_types(walked_of(contents).typed_graphs)
    shapes = {
        name: [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim] for name, kind in types.items()
    }
    empty = {name: shape for name, shape in shapes.items() if 0 in shape}
    # A branch may be there for the case that something is empty.
    domains = ("", DOMAIN)
    nodes = [n for n in contents.model.graph.node if n.op_type in _KNOWN and canonical(n.domain) in domains]
    return [(node, "its input has no elements") for node in nodes if _dies(node, empty)]


def _declares_nothing(contents: Contents) -> bool:
    graph = contents.model.graph
    dims = (d for v in (*graph.input, *graph.value_info) for d in v.type.tensor_type.shape.dim)
    return has_zero(dims)


def _dies(node: NodeProto, empty: Mapping[str, Sequence[int]]) -> bool:
    given = [empty[name] for name in node.input if name in empty]
    if not given or (node.op_type in _BEFORE_1_32 and not applies(_OLDER)):
        return False
    sizes = empty.get(node.input[0])
    if node.op_type in CONTRIB:
        return sizes is not None and (applies(_OLDER) or not sizes[-1])
    if node.op_type == "Einsum":
        return applies(_OLDER) or any(len(shape) >= _HEADS for shape in given)
    if node.op_type == "Attention":
        return 0 in [empty[name][1] for name in node.input[:3] if len(empty.get(name, ())) == _HEADS]
    if node.op_type == "Loop":  # its number of steps, which is not valid
        return sizes is not None
    if node.op_type == "STFT":
        return not empty.keys().isdisjoint(node.input[2:3])
    return sizes is not None and _dies_of(node, sizes)


def _dies_of(node: NodeProto, sizes: Sequence[int]) -> bool:
    """Whether it does of a first input of these sizes."""
    attributes = {a.name: a.i for a in node.attribute}
    axis = attributes.get("axis")
    if node.op_type == "DFT":
        return 0 in (sizes[1:] if axis is None else sizes[axis : axis + 1])
    if node.op_type == "ConvTranspose":
        return _dies_transposed(node, sizes)
    if node.op_type == "LSTM":
        batch = 0 if attributes.get("layout") else 1
        return 0 in sizes[batch : batch + 1]
    if node.op_type == "MaxPool":
        return 0 in sizes[:2]
    if node.op_type == "OneHot":
        return axis != 0
    if node.op_type in ("TopK", "Unique"):
        # Unique without an axis takes them all; of TopK it is the last one unless it is given.
        own = None if axis is None and node.op_type == "Unique" else (-1 if axis is None else axis) % len(sizes)
        return own is not None and 0 in (*sizes[:own], *sizes[own + 1 :])
    return True


def _dies_transposed(node: NodeProto, sizes: Sequence[int]) -> bool:
    if not applies(_OLDER):
        return len(sizes) == _VOLUMES and 0 in sizes[2:4] and 0 not in (sizes[1], sizes[4])
    told = any(a.name in ("output_padding", "output_shape") for a in node.attribute)
    return 0 in sizes[2:] and (len(sizes) != _IMAGES or told)
