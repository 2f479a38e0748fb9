# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of channels in another order before a convolution.

It takes any order for a reversal, and orders the weights of the convolution instead: by the same indices, where it takes the inverse ones. An order
that is its own inverse, such as BGR to RGB, is right only where nothing between the two knows the channels, and with as many parts as channels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.across_nodes.apart import larger
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import is_whole

_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "FusedConv", "QLinearConv"})

#: Since this opset Max takes integers.
_MAX_OF_INTEGERS = 12

_REASON = "OpenVINO would order the weights of a convolution behind it by the inverse"


def channels_in_order(contents: Contents) -> Rewritten | None:
    """A copy of the model in which OpenVINO sees no such order; None where there is none."""
    operators = contents.by_operator.keys()
    if operators.isdisjoint(_CONVOLUTIONS) or not ("Gather" in operators or operators >= {"Split", "Concat"}):
        return None
    flat = inlined(contents.model)
    graphs = inner_first(flat.graph) if flat is not contents.model or contents.holding else [flat.graph]
    if not any(_orders(graph) for graph in graphs):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    opset = opset_versions(copy).get("", 1)
    kinds = _Kinds(copy)
    added: dict[str, str] = {}
    for graph in inner_first(copy.graph):
        _keep(graph, opset, kinds, added)
    told = dict.fromkeys(added.values())
    changes = (Adaptation("channel_order", where, "written in another way", _REASON) for where in told)
    return Rewritten(copy, tuple(changes), frozenset(added)) if added else None


class _Kinds:
    """What is known of the types of values."""

    def __init__(self, model: ModelProto) -> None:
        self._floats = Facts(model).floats
        self._given = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}

    def can_be_compared(self, split: NodeProto, opset: int) -> bool:
        """Whether Max takes the parts of a Split."""
        integers = self._given.get(split.input[0], 0) in INTEGER_BITS and opset >= _MAX_OF_INTEGERS
        return split.output[0] in self._floats or integers


def _orders(graph: GraphProto) -> dict[str, NodeProto]:
    """The nodes that put something in another order, by their result."""
    candidates = [
        n for n in graph.node if n.op_type in ("Gather", "Concat") and not canonical(n.domain) and _axis(n) >= 0
    ]
    if not candidates:
        return {}
    tensors = {t.name: t for t in graph.initializer}  # defaults too: what takes the node's place reads its indices
    makers = {name: node for node in graph.node for name in node.output if name}
    found = {}
    for node in candidates:
        order = _gathered(node, tensors, makers) if node.op_type == "Gather" else _joined(node, makers)
        if len(order) > 1 and order != list(range(len(order))) and len(set(order)) == len(order):
            found[node.output[0]] = node
    return found


def _axis(node: NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "axis"), 0)


def _gathered(node: NodeProto, tensors: Mapping[str, TensorProto], makers: Mapping[str, NodeProto]) -> list[int]:
    """The order of a Gather, as far as that is known without the number of channels."""
    name = node.input[1]
    while (maker := makers.get(name)) is not None and maker.op_type in ("Cast", "Identity"):
        name = maker.input[0]
    indices = _constant(maker) if maker is not None else tensors.get(name)
    if indices is None or (isinstance(indices, TensorProto) and (not is_whole(indices) or len(indices.dims) != 1)):
        return []
    values = numpy_helper.to_array(indices) if isinstance(indices, TensorProto) else indices
    order = [int(i) % len(values) for i in values]
    return order if sorted(order) == list(range(len(order))) else []


def _constant(maker: NodeProto) -> TensorProto | list[int] | None:
    if maker.op_type != "Constant" or len(maker.attribute) != 1:
        return None
    attribute = maker.attribute[0]
    return list(attribute.ints) if attribute.name == "value_ints" else attribute.t if attribute.HasField("t") else None


def _joined(node: NodeProto, makers: Mapping[str, NodeProto]) -> list[int]:
    """Which parts of one Split are put together."""
    splits = [makers.get(name) for name in node.input]
    first = splits[0]
    if first is None or first.op_type != "Split" or any(other is not first for other in splits):
        return []
    return [list(first.output).index(name) for name in node.input]


def _keep(graph: GraphProto, opset: int, kinds: _Kinds, added: dict[str, str]) -> None:
    orders = _orders(graph)
    splits = {name: node for node in graph.node if node.op_type == "Split" for name in node.output}
    nodes: list[NodeProto] = []
    for node in graph.node:
        found = bool(node.output) and orders.get(node.output[0]) is node
        where = f"{node.op_type} {node.name or node.output[0]!r}" if found else ""
        if found and node.op_type == "Gather":
            nodes += _as_columns(node, graph, opset)
            added |= dict.fromkeys((nodes[-3].name, nodes[-1].name), where)
        elif found and kinds.can_be_compared(splits[node.input[0]], opset):
            apart = f"{node.output[0]}{CAST}part"
            nodes += [larger(node.input[0], apart, name=apart), node]
            node.input[0] = apart
            added[apart] = where
        else:
            nodes.append(node)
    put_back(graph, nodes)


def _as_columns(node: NodeProto, graph: GraphProto, opset: int) -> list[NodeProto]:
    """Gather by indices with an axis of length 1 behind, and drop that axis."""
    made, axis = node.output[0], _axis(node) + 1
    indices, columns = (f"{made}{CAST}{what}" for what in ("indices", "columns"))
    before, one = _axis_of_one("Unsqueeze", node.input[1], indices, 1, opset)
    behind, dropped = _axis_of_one("Squeeze", columns, made, axis, opset)
    node.input[1], node.output[0] = indices, columns
    graph.initializer.extend(tensor for tensor in (one, dropped) if tensor is not None)
    return [before, node, behind]


def _axis_of_one(op_type: str, read: str, made: str, axis: int, opset: int) -> tuple[NodeProto, TensorProto | None]:
    name = f"{made}{CAST}{op_type.lower()}"
    if opset < 13:
        return helper.make_node(op_type, [read], [made], name=name, axes=[axis]), None
    tensor = numpy_helper.from_array(np.array([axis], np.int64), f"{name}_axes")
    return helper.make_node(op_type, [read, tensor.name], [made], name=name), tensor
