# SPDX-License-Identifier: Apache-2.0
"""Int8 operands that only a run brings, as uint8, where sums of products of unsigned and signed bytes would saturate: see `byte_products`.

128 is added to them, and to their zero points, in every run. ONNX Runtime's products of signed by signed bytes of a run are exact, and so are
OpenVINO's where the other operand has a zero point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.names import CAST
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
    multiplied = _multiplied(contents.nodes) if contents.has({"DequantizeLinear"}) else set()
    return any(
        known.isdisjoint(node.input[_OPERANDS[node.op_type].place :][:1])
        and (node.op_type != "DequantizeLinear" or not multiplied.isdisjoint(node.output))
        for node in contents.of(*OPERATORS)
    )


def shift_operands(model: ModelProto, operators: Collection[str], *, on_openvino: bool) -> list[str]:
    """Write such operands of some operators unsigned, in a model that OpenVINO computes or ONNX Runtime; their names."""
    opset = next((o.version for o in model.opset_import if not canonical(o.domain)), 1)
    return _shift(model.graph, OPERATORS & set(operators), on_openvino) if opset >= _INTEGERS_SINCE else []


def _multiplied(nodes: Iterable[NodeProto]) -> set[str]:
    return {name for node in nodes if node.op_type in _PRODUCTS for name in node.input[1:2]}


def _shift(graph: GraphProto, operators: Collection[str], on_openvino: bool) -> list[str]:
    held = {name: tensor for name, tensor in constants_of(graph).items() if is_whole(tensor)}
    # OpenVINO keeps the defaults of inputs.
    fixed = {tensor.name: tensor for tensor in graph.initializer if is_whole(tensor)} | held
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output, *graph.input)}
    types |= {name: tensor.data_type for name, tensor in held.items()}
    multiplied = _multiplied(graph.node)
    done: list[str] = []
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in subgraphs(node):
            done += _shift(inner, operators, on_openvino)
        if (
            node.op_type in operators
            and _may_be_raised(node, held, types, multiplied)
            and (_is_symmetric(node, fixed) if on_openvino else not _is_signed(node, types, other=True))
        ):
            done.append(node.input[_OPERANDS[node.op_type].place])
            nodes += _unsigned(graph, node, held)
        nodes.append(node)
    if done:
        put_back(graph, nodes)
    return done


def _may_be_raised(
    node: NodeProto, held: Mapping[str, TensorProto], types: Mapping[str, int], multiplied: Collection[str]
) -> bool:
    """Whether a node has such an operand, and a zero point that can be raised."""
    found = _OPERANDS[node.op_type]
    if node.op_type == "DequantizeLinear":
        has_zeros = bool(_read(node, found.zero)) or node.input[1] in held
        if node.output[0] not in multiplied or not has_zeros:
            return False
    return _read(node, found.place) not in held and _is_signed(node, types)


def _is_symmetric(node: NodeProto, fixed: Mapping[str, TensorProto]) -> bool:
    """Whether the other operand of a node has no zero point, as far as that is known."""
    zero = _OPERANDS[node.op_type].other_zero
    name = _read(node, zero) if zero >= 0 else ""
    return not name or (name in fixed and not numpy_helper.to_array(fixed[name]).any())


def _is_signed(node: NodeProto, types: Mapping[str, int], *, other: bool = False) -> bool:
    """Whether such an operand of a node, or the other one, is of int8, as far as that is known."""
    places = _OPERANDS[node.op_type][2:] if other else _OPERANDS[node.op_type][:2]
    return any(types.get(_read(node, place)) == TensorProto.INT8 for place in places if place >= 0)


def _read(node: NodeProto, place: int) -> str:
    return node.input[place] if len(node.input) > place else ""


def _unsigned(graph: GraphProto, node: NodeProto, held: Mapping[str, TensorProto]) -> Iterator[NodeProto]:
    """Have a node read its operand and zero point unsigned; what makes them."""
    place, zero = _OPERANDS[node.op_type][:2]
    node.input.extend([""] * (zero + 1 - len(node.input)))
    for read in (place, zero):
        name, made = node.input[read], f"{node.output[0]}/{CAST}_unsigned{read}"
        node.input[read] = made
        if name and name not in held:
            yield from _raised(name, made)
        else:
            dims = held[node.input[1]].dims if node.op_type == "DequantizeLinear" and not name else ()
            values = numpy_helper.to_array(held[name]) if name else np.zeros(dims, np.int8)
            raised = np.asarray(values.astype(np.int16) + _SHIFT, np.uint8)
            graph.initializer.append(numpy_helper.from_array(raised, made))


def _raised(name: str, made: str) -> Iterator[NodeProto]:
    wide, sum_, by = (f"{made}/{part}" for part in ("wide", "sum", "by"))
    yield helper.make_node("Cast", [name], [wide], name=wide, to=TensorProto.INT32)
    yield helper.make_node("Constant", [], [by], name=by, value=helper.make_tensor(by, TensorProto.INT32, [], [_SHIFT]))
    yield helper.make_node("Add", [wide, by], [sum_], name=sum_)
    yield helper.make_node("Cast", [sum_], [made], name=made, to=TensorProto.UINT8)
