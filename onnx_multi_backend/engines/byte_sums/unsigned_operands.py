# SPDX-License-Identifier: Apache-2.0
"""Int8 operands that a run brings or scales, as uint8, where sums of products of unsigned and signed bytes would saturate: see `byte_products`.

128 is added to them, and to their zero points, in every run; to constants whose zero point a run brings, once. ONNX Runtime's products of signed by
signed bytes are exact, and so are OpenVINO's products of matrices where the other operand has a zero point.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.byte_sums.wide_weights import is_wide
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of, put_back, subgraphs
from onnx_multi_backend.models.tensors import is_whole

_SHIFT = 128
_INTEGERS_SINCE = 7  # the opset since which Add takes them and broadcasts


class _Operand(NamedTuple):
    """Where a node has an operand and its zero point, and the other operand and its zero point (-1: there is none)."""

    place: int
    zero: int
    other: int
    other_zero: int


_OPERANDS: Mapping[str, _Operand] = {
    "ConvInteger": _Operand(0, 2, 1, 3),  # ONNX Runtime multiplies the weights by the image
    "DequantizeLinear": _Operand(0, 2, -1, -1),
    "MatMulInteger": _Operand(1, 3, 0, 2),
    "QLinearConv": _Operand(3, 5, 0, 2),
    "QLinearMatMul": _Operand(3, 5, 0, 2),
}
OPERATORS = _OPERANDS.keys()
#: What multiplies by its second operand what was dequantized.
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})


def may_be_signed(contents: Contents) -> bool:
    """Whether a model may have such operands."""
    known = {tensor.name for tensor in contents.tensors} | {node.output[0] for node in contents.of("Constant")}
    known -= {value.name for value in contents.model.graph.input}  # a run may replace a default
    multiplied = _multiplied(contents.nodes) if contents.has({"DequantizeLinear"}) else set()
    return any(
        known.isdisjoint(node.input[_OPERANDS[node.op_type].place :][:1])
        and (node.op_type != "DequantizeLinear" or not multiplied.isdisjoint(node.output))
        for node in contents.of(*OPERATORS)
    )


def shift_operands(
    model: ModelProto, operators: Collection[str], *, on_openvino: bool, provider: bool = False
) -> list[str]:
    """Write such operands of some operators unsigned, in a model that OpenVINO computes or ONNX Runtime; their names.

    `provider`: ONNX Runtime computes what its OpenVINO execution provider leaves.
    """
    opset = next((o.version for o in model.opset_import if not canonical(o.domain)), 1)
    if opset < _INTEGERS_SINCE:
        return []
    return _Graph(model.graph, OPERATORS & set(operators), on_openvino, provider).shifted()


def _multiplied(nodes: Iterable[NodeProto]) -> set[str]:
    return {name for node in nodes if node.op_type in _PRODUCTS for name in node.input[1:2]}


class _Graph:
    """A graph whose operands are written unsigned, and what it knows of the graphs around it."""

    def __init__(
        self,
        graph: GraphProto,
        operators: Collection[str],
        on_openvino: bool,
        provider: bool,
        around: _Graph | None = None,
    ) -> None:
        self._graph, self._operators, self._on_openvino, self._provider = graph, operators, on_openvino, provider
        own = {name: tensor for name, tensor in constants_of(graph).items() if is_whole(tensor)}
        made = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
        self._held: dict[str, TensorProto] = {
            name: tensor for name, tensor in (around._held if around else {}).items() if name not in made
        } | own
        # OpenVINO keeps the defaults of inputs.
        self._fixed = {tensor.name: tensor for tensor in graph.initializer if is_whole(tensor)} | self._held
        self._types: dict[str, int] = {
            name: kind for name, kind in (around._types if around else {}).items() if name not in made
        }
        self._types |= {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output, *graph.input)}
        self._types |= {name: tensor.data_type for name, tensor in own.items()}
        self._dims: dict[str, tuple[int, ...]] = {
            name: dims for name, dims in (around._dims if around else {}).items() if name not in made
        }
        self._dims |= {value.name: dims for value in graph.input if (dims := _static_dims(value)) is not None}
        self._dims |= {name: tuple(tensor.dims) for name, tensor in self._held.items()}
        self._multiplied = _multiplied(graph.node)
        self._made = made | {tensor.name for tensor in graph.initializer}
        self._around = around
        self._count: Iterator[int] = around._count if around else itertools.count()
        #: What makes values of the graphs around unsigned, by their names: these graphs are to hold it.
        self._before: list[tuple[str, list[NodeProto]]] = []

    def shifted(self) -> list[str]:
        """Write the operands of its nodes and those of its subgraphs unsigned; their names."""
        done: list[str] = []
        nodes: list[NodeProto] = []
        for node in self._graph.node:
            for inner in subgraphs(node):
                graph = _Graph(inner, self._operators, self._on_openvino, self._provider, self)
                done += graph.shifted()
                for name, before in graph._before:
                    nodes += self._here(name, before)
            if node.op_type in OPERATORS and self._may_saturate(node) and self._may_be_raised(node):
                done.append(node.input[_OPERANDS[node.op_type].place])
                nodes += self._unsigned(node)
            nodes.append(node)
        if done:
            put_back(self._graph, nodes)
        return done

    def _may_saturate(self, node: NodeProto) -> bool:
        """Whether the engine that computes a node adds products of unsigned and signed bytes of it, as far as types are known."""
        is_meant = node.op_type in self._operators
        if self._on_openvino and is_meant and (node.op_type == "QLinearConv" or self._is_symmetric(node)):
            return True
        may_be_left = self._provider and (is_meant or self._may_be_left(node))
        return (may_be_left or (is_meant and not self._on_openvino)) and not self._is_signed(node, other=True)

    def _may_be_left(self, node: NodeProto) -> bool:
        """Whether OpenVINO's execution provider may leave a product of integers to ONNX Runtime, or find it computed ahead.

        One of matrices without a zero point it takes, and with that of the second matrix alone it does not.
        """
        if node.op_type == "MatMulInteger":
            return bool(_read(node, _OPERANDS[node.op_type].zero)) or all(name in self._held for name in node.input[:2])
        return node.op_type == "ConvInteger"

    def _may_be_raised(self, node: NodeProto) -> bool:
        """Whether a node has such an operand, and a zero point that can be raised."""
        found = _OPERANDS[node.op_type]
        constant = self._held.get(_read(node, found.place))
        if node.op_type == "DequantizeLinear":
            has_zeros = bool(_read(node, found.zero)) or node.input[1] in self._dims
            if node.output[0] not in self._multiplied or not has_zeros:
                return False
        return self._is_signed(node) and (constant is None or is_wide(constant))

    def _is_symmetric(self, node: NodeProto) -> bool:
        """Whether the other operand of a node has no zero point, as far as that is known."""
        zero = _OPERANDS[node.op_type].other_zero
        name = _read(node, zero) if zero >= 0 else ""
        return not name or (name in self._fixed and not numpy_helper.to_array(self._fixed[name]).any())

    def _is_signed(self, node: NodeProto, *, other: bool = False) -> bool:
        """Whether such an operand of a node, or the other one, is of int8, as far as that is known."""
        places = _OPERANDS[node.op_type][2:] if other else _OPERANDS[node.op_type][:2]
        return any(self._types.get(_read(node, place)) == TensorProto.INT8 for place in places if place >= 0)

    def _here(self, name: str, nodes: list[NodeProto]) -> list[NodeProto]:
        """These nodes where their value is made in this graph, or there is no graph around it; others are left to that."""
        if self._around is None or name in self._made:
            return nodes
        self._before.append((name, nodes))
        return []

    def _unsigned(self, node: NodeProto) -> Iterator[NodeProto]:
        """Have a node read its operand and zero point unsigned; what makes them."""
        place, zero = _OPERANDS[node.op_type][:2]
        node.input.extend([""] * (zero + 1 - len(node.input)))
        for read in (place, zero):
            name, made = node.input[read], f"{node.output[0]}/{CAST}_unsigned{next(self._count)}"
            node.input[read] = made
            if name and name not in self._held:
                yield from self._here(name, list(_raised(name, made)))
            else:
                dims = self._dims[node.input[1]] if node.op_type == "DequantizeLinear" and not name else ()
                values = numpy_helper.to_array(self._held[name]) if name else np.zeros(dims, np.int8)
                raised = np.asarray(values.astype(np.int16) + _SHIFT, np.uint8)
                self._graph.initializer.append(numpy_helper.from_array(raised, made))


def _static_dims(value: ValueInfoProto) -> tuple[int, ...] | None:
    """The sizes of an input, where all are declared."""
    declared = value.type.tensor_type
    sizes = [dim.dim_value for dim in declared.shape.dim if dim.HasField("dim_value")]
    return tuple(sizes) if declared.HasField("shape") and len(sizes) == len(declared.shape.dim) else None


def _read(node: NodeProto, place: int) -> str:
    return node.input[place] if len(node.input) > place else ""


def _raised(name: str, made: str) -> Iterator[NodeProto]:
    wide, sum_, by = (f"{made}/{part}" for part in ("wide", "sum", "by"))
    yield helper.make_node("Cast", [name], [wide], name=wide, to=TensorProto.INT32)
    yield helper.make_node("Constant", [], [by], name=by, value=helper.make_tensor(by, TensorProto.INT32, [], [_SHIFT]))
    yield helper.make_node("Add", [wide, by], [sum_], name=sum_)
    yield helper.make_node("Cast", [sum_], [made], name=made, to=TensorProto.UINT8)
