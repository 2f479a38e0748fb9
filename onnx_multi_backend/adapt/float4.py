# SPDX-License-Identifier: Apache-2.0
"""Pass: float4 tensors are carried as float32, where the engine computes nothing with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.single_node import Scope, infer, opset_versions, scope_of, subgraphs
from onnx_multi_backend.adapt.work import Adaptation, Edge, Work
from onnx_multi_backend.graph_walk import all_nodes

_NARROW, _WIDE = TensorProto.FLOAT4E2M1, TensorProto.FLOAT
_LARGEST = 6.0
_REASON = "the engine computes nothing with float4e2m1"


def float4(work: Work) -> None:
    """Carry every float4 value as the float32 of the same value, and round where a value becomes float4.

    A tensor of float4 holds 15 different numbers, all of them float32 too. The nodes that only move values need no
    change; those that convert get the rounding written out: to the nearest, ties to even, saturating.
    Source: https://onnx.ai/onnx/technical/float4.html and the documentation of Cast and QuantizeLinear.
    """
    if not _occurs(work.model):
        return
    opset = opset_versions(work.model).get("", 1)
    if work.limits.takes_directly(_NARROW) or work.limits.can_cast(_NARROW, opset, out=True):
        return
    if any(next(subgraphs(node), None) is not None for node in work.model.graph.node) or work.model.functions:
        return  # left to the engine to refuse
    scope = scope_of(infer(work.model))
    graph = work.edit().graph
    for kind, values, edges in (("input", graph.input, work.inputs), ("output", graph.output, work.outputs)):
        for value in values:
            if value.type.tensor_type.elem_type == _NARROW:
                value.type.tensor_type.elem_type = _WIDE
                edges[value.name] = Edge(value.name, _WIDE)
                work.changes.append(Adaptation("float4", f"{kind} {value.name}", "carried as float", _REASON))
    del graph.value_info[:]
    for tensor in graph.initializer:
        if tensor.data_type == _NARROW:
            tensor.CopyFrom(_widened(tensor))
    nodes = []
    for node in graph.node:
        made = list(_Rewriter(node, scope, opset).nodes())
        nodes += made
        if made != [node]:
            operators = ", ".join(dict.fromkeys(n.op_type for n in made))
            work.changes.append(Adaptation("float4", node.name or node.op_type, f"written with {operators}", _REASON))
    del graph.node[:]
    graph.node.extend(nodes)


def _occurs(model: ModelProto) -> bool:
    graph = model.graph
    if any(v.type.tensor_type.elem_type == _NARROW for v in (*graph.input, *graph.output)):
        return True
    if any(t.data_type == _NARROW for t in graph.initializer):
        return True
    return any(_makes_float4(a) for node in all_nodes(model) for a in node.attribute)


def _makes_float4(attribute: AttributeProto) -> bool:
    if attribute.name in ("to", "output_dtype", "dtype"):
        return bool(attribute.i == _NARROW)
    return attribute.HasField("t") and attribute.t.data_type == _NARROW


def _widened(tensor: TensorProto) -> TensorProto:
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name)


class _Rewriter:
    """One node, on float32 instead of float4."""

    def __init__(self, node: NodeProto, scope: Scope, opset: int) -> None:
        self._node = node
        self._scope = scope
        self._opset = opset
        self._made: list[NodeProto] = []
        self._attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def nodes(self) -> Iterator[NodeProto]:
        node, output = self._node, self._node.output[0]
        source = self._kind(node.input[0]) if node.input else 0
        made = self._kind(output)
        match node.op_type:
            case "Cast" | "CastLike" if made == _NARROW:
                self._round(node.input[0], output, source)
            case "Cast" if source == _NARROW:
                self._add("Cast", [node.input[0]], output, to=self._attributes["to"])
            case "QuantizeLinear" if made == _NARROW:
                x = self._add("Cast", [node.input[0]], to=_WIDE)
                self._round(self._add("Div", [x, self._scale()]), output, _WIDE)
            case "DequantizeLinear" if source == _NARROW:
                scaled = self._add("Mul", [node.input[0], self._scale()])
                self._add("Cast", [scaled], output, to=made)
            case "Constant" if made == _NARROW and "value" in self._attributes:
                yield helper.make_node("Constant", [], [output], value=_widened(self._attributes["value"]))
                return
            case _:
                yield node
                return
        yield from self._made

    def _kind(self, name: str) -> int:
        found = self._scope.types.get(name)
        return found.tensor_type.elem_type if found is not None and found.HasField("tensor_type") else 0

    def _rank(self, name: str) -> int:
        found = self._scope.types.get(name)
        return len(found.tensor_type.shape.dim) if found is not None else 0

    def _add(self, op_type: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        output = output or f"{self._node.output[0]}/omb_float4_{len(self._made)}"
        self._made.append(helper.make_node(op_type, inputs, [output], f"{output}/node", **attributes))
        return output

    def _number(self, value: Any, kind: type = np.float32) -> str:
        return self._add("Constant", [], value=numpy_helper.from_array(np.array(value, kind)))

    def _round(self, x: str, output: str, source: int) -> None:
        """Round to the nearest number of float4: multiples of 0.5 up to 2, of 1 up to 4, of 2 up to 6."""
        if source not in (_WIDE, _NARROW):
            x = self._add("Cast", [x], to=_WIDE)
        size = self._add("Abs", [x])
        zero, one, two, four = (self._number(v) for v in (0, 1, 2, 4))
        step = self._add("Where", [self._add("Less", [size, four]), one, two])
        step = self._add("Where", [self._add("Less", [size, two]), self._number(0.5), step])
        rounded = self._add("Mul", [self._add("Round", [self._add("Div", [size, step])]), step])
        rounded = self._add("Min", [rounded, self._number(_LARGEST)])
        below = self._add("Or", [self._add("Less", [x, zero]), self._add("Less", [self._add("Div", [one, x]), zero])])
        # A product, because the Where of ONNX Runtime makes 0 of -0.
        twice = self._add("Mul", [self._add("Cast", [below], to=_WIDE), two])
        self._add("Mul", [rounded, self._add("Sub", [one, twice])], output)

    def _scale(self) -> str:
        """The scale in float32, shaped so that it broadcasts: one number, one an index of the axis, or one a block."""
        x, scale = self._node.input[0], self._add("Cast", [self._node.input[1]], to=_WIDE)
        rank, block = self._rank(x), self._attributes.get("block_size", 0)
        axis = self._attributes.get("axis", 1) % max(rank, 1)
        if self._rank(self._node.input[1]) == 0:
            return scale
        if not block:
            shape = [1] * rank
            shape[axis] = -1
            return self._add("Reshape", [scale, self._number(shape, np.int64)])
        # Each scale stands for a block along the axis; the last block may be short.
        index = self._add("Range", [self._number(0, np.int64), self._size(x, axis), self._number(1, np.int64)])
        return self._add("Gather", [scale, self._add("Div", [index, self._number(block, np.int64)])], axis=axis)

    def _size(self, x: str, axis: int) -> str:
        return self._add("Gather", [self._add("Shape", [x]), self._number(axis, np.int64)])
