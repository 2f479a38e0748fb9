# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of channels in another order before a convolution.

It takes any order for a reversal, and orders the weights of the convolution instead: by the same indices, where it takes the inverse ones. Orders
that are their own inverse come out right, such as BGR to RGB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import Facts, inlined, opset_versions
from onnx_multi_backend.engines.apart import inner_first, larger, put_back
from onnx_multi_backend.models.graph_walk import all_nodes, canonical
from onnx_multi_backend.models.plausible import expands_too_far
from onnx_multi_backend.models.tensors import is_whole

_CONVOLUTIONS = frozenset({"Conv", "FusedConv"})

#: Of so many parts of a Split OpenVINO knows the order.
_PARTS = 3

_REASON = "OpenVINO would order the weights of a convolution behind it by the inverse"


def channels_in_order(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...], frozenset[str]]:
    """A copy of the model in which OpenVINO sees no such order; the model itself where there is none.

    Returns
    -------
    model : onnx.ModelProto
    changes : tuple of Adaptation
    added : frozenset of str
        The names of the nodes that are new.
    """
    operators = {node.op_type for node in all_nodes(model)}
    if not operators & _CONVOLUTIONS or not (operators & {"Gather"} or operators >= {"Split", "Concat"}):
        return model, (), frozenset()
    if expands_too_far(model):
        return model, (), frozenset()
    flat = inlined(model)
    if not any(_orders(graph) for graph in inner_first(flat.graph)):
        return model, (), frozenset()
    copy = ModelProto()
    copy.CopyFrom(flat)
    opset = opset_versions(copy).get("", 1)
    floats = Facts(copy).floats
    added: dict[str, str] = {}
    for graph in inner_first(copy.graph):
        _keep(graph, opset, floats, added)
    changes = (Adaptation("channel_order", where, "written in another way", _REASON) for where in added.values())
    return (copy, tuple(changes), frozenset(added)) if added else (model, (), frozenset())


def _orders(graph: GraphProto) -> list[tuple[NodeProto, list[int]]]:
    """The nodes that put channels in an order that is not its own inverse, and the order."""
    tensors = {t.name: t for t in graph.initializer}
    tensors |= {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant" and n.attribute}
    splits = {
        name: (node, i) for node in graph.node if node.op_type == "Split" for i, name in enumerate(node.output) if name
    }
    found = []
    for node in graph.node:
        if canonical(node.domain) or node.op_type not in ("Gather", "Concat") or _axis(node) != 1:
            continue
        order = _gathered(node, tensors) if node.op_type == "Gather" else _joined(node, splits)
        if order and sorted(order) == list(range(len(order))) and any(order[order[i]] != i for i in order):
            found.append((node, order))
    return found


def _axis(node: NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "axis"), 0)


def _gathered(node: NodeProto, tensors: Mapping[str, TensorProto]) -> list[int]:
    tensor = tensors.get(node.input[1])
    if tensor is None or not is_whole(tensor) or len(tensor.dims) != 1:
        return []
    indices = numpy_helper.to_array(tensor)
    return [int(i) % len(indices) for i in indices]


def _joined(node: NodeProto, splits: Mapping[str, tuple[NodeProto, int]]) -> list[int]:
    parts = [splits.get(name) for name in node.input]
    known = [part for part in parts if part is not None]
    same = len({id(split) for split, _ in known}) == 1
    return [i for _, i in known] if len(known) == len(parts) == _PARTS and same else []


def _keep(graph: GraphProto, opset: int, floats: set[str], added: dict[str, str]) -> None:
    orders = {node.output[0]: order for node, order in _orders(graph)}
    splits = {name: node.output[0] for node in graph.node if node.op_type == "Split" for name in node.output}
    nodes: list[NodeProto] = []
    for node in graph.node:
        order = orders.get(node.output[0]) if node.output else None
        where = f"{node.op_type} {node.name or node.output[0]!r}" if order else ""
        if order is None:
            nodes.append(node)
        elif node.op_type == "Gather":
            nodes += _as_columns(node, order, graph, opset)
            added[nodes[-1].name] = where
        elif splits[node.input[0]] in floats:
            read, apart = node.input[0], f"{node.output[0]}{CAST}part"
            nodes += [larger(read, apart), node]
            node.input[0] = apart
            added[apart] = where
        else:
            nodes.append(node)
    put_back(graph, nodes)


def _as_columns(node: NodeProto, order: Sequence[int], graph: GraphProto, opset: int) -> list[NodeProto]:
    """Gather by indices with an axis of length 1 behind, and drop that axis."""
    made = node.output[0]
    indices, columns, axes = (f"{made}{CAST}{what}" for what in ("indices", "columns", "axes"))
    graph.initializer.append(numpy_helper.from_array(np.array(order, np.int64).reshape(-1, 1), indices))
    node.input[1], node.output[0] = indices, columns
    if opset < 13:
        return [node, helper.make_node("Squeeze", [columns], [made], name=columns, axes=[2])]
    graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), axes))
    return [node, helper.make_node("Squeeze", [columns, axes], [made], name=columns)]
