# SPDX-License-Identifier: Apache-2.0
"""Int8 weights as uint8, where sums of products of unsigned and signed bytes would saturate: see `byte_products`.

The weights and their zero points are 128 larger: the numbers they stand for are the same, and both engines add products of unsigned bytes
exactly. So are those of what the model itself quantizes to int8, weights or not, where that is dequantized alone: the engine then quantizes to
uint8. (ONNX Runtime's option ``session.x64quantprecision`` does this too. Up to 1.32 it fails where two products share a weight, and where a
DequantizeLinear has a scale for each channel and no zero points.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines import byte_products
from onnx_multi_backend.engines.unsigned_operands import shift_operands
from onnx_multi_backend.models.graph_walk import constants_of, names_read, subgraphs
from onnx_multi_backend.models.tensors import is_whole

_REASON = "sums of two products of bytes saturate on this processor, which has no VNNI"

_SHIFT = 128
_SUFFIX = "/omb_unsigned"


class _Places(NamedTuple):
    """Which inputs are weights, their scales (-1: there are none) and their zero points."""

    weights: int
    scales: int
    zeros: int


#: OpenVINO adds products of the others exactly.
SATURATING_ON_OPENVINO = frozenset({"DequantizeLinear", "QLinearConv", "QLinearMatMul"})

_PLACES: Mapping[str, tuple[_Places, ...]] = {
    "ConvInteger": (),  # right, but for an image that a run brings
    "DequantizeLinear": (_Places(0, 1, 2),),
    "MatMulInteger": (_Places(1, -1, 3),),
    "QLinearConv": (_Places(3, 4, 5),),
    "QLinearMatMul": (_Places(3, 4, 5),),
    # ONNX Runtime's own
    "DynamicQuantizeLSTM": (_Places(1, 8, 9), _Places(2, 10, 11)),
    "DynamicQuantizeMatMul": (_Places(1, 2, 3),),
    "MatMulIntegerToFloat": (_Places(1, 3, 5),),
    "QAttention": (_Places(1, 4, 7),),
    "QGemm": (_Places(3, 4, 5),),
}

SATURATING = _PLACES.keys()


#: What ONNX Runtime has no kernels of for signed inputs and unsigned weights, and the place of the input's zero point. Those of signed by signed
#: bytes are exact.
_OF_ONE_TYPE: Mapping[str, int] = {
    "MatMulIntegerToFloat": 4,
    "QAttention": 6,
    "QGemm": 2,
    "QLinearConv": 2,
    "QLinearMatMul": 2,
}


def with_unsigned_weights(
    model: ModelProto, operators: Collection[str], *, on_openvino: bool
) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of a model, which has all its weights, with such ones unsigned; the model itself where there are none.

    Parameters
    ----------
    operators : collection of str
        Those whose weights are changed.
    on_openvino : bool
        Whether OpenVINO computes them, rather than ONNX Runtime.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    names = [*_shift(copy.graph, operators, on_openvino), *shift_operands(copy, operators, on_openvino=on_openvino)]
    if not names:
        return model, ()
    return copy, tuple(Adaptation("unsigned_weights", name, "int8 written as uint8", _REASON) for name in names)


def _shift(graph: GraphProto, operators: Collection[str], on_openvino: bool) -> list[str]:
    held = constants_of(graph)
    signed = {v.name for v in (*graph.input, *graph.value_info) if v.type.tensor_type.elem_type == TensorProto.INT8}
    signed |= {name for name, tensor in held.items() if tensor.data_type == TensorProto.INT8}
    readers: defaultdict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    elsewhere = {value.name for value in graph.output}
    done: list[str] = []
    quantized: list[NodeProto] = []
    for node in graph.node:
        for place, name in enumerate(node.input):
            readers[name].append((node, place))
        for inner in subgraphs(node):
            elsewhere.update(names_read(inner))
            done += _shift(inner, operators, on_openvino)
        if node.op_type == "QuantizeLinear":
            quantized.append(node)

    def zeros_of_readers(name: str) -> list[tuple[NodeProto, int, np.ndarray]] | None:
        """Where the readers of weights have their zero points, and these; None where one is not known, or the weights are read elsewhere."""
        if name in elsewhere or any(node.op_type not in operators for node, _ in readers[name]):
            return None
        found = [
            (node, None if not on_openvino and _multiplies_signed(node, signed) else _zeros(node, place, held))
            for node, place in readers[name]
        ]
        return [(node, *zeros) for node, zeros in found if zeros is not None] if all(z for _, z in found) else None

    for name, tensor in held.items():
        if not byte_products.saturating([tensor]) or (known := zeros_of_readers(name)) is None:
            continue
        for node, place, zeros in known:
            _set_zeros(graph, node, place, zeros, f"{name}{_SUFFIX}{len(graph.initializer)}")
        shifted = numpy_helper.to_array(tensor).astype(np.int16) + _SHIFT
        tensor.CopyFrom(numpy_helper.from_array(shifted.astype(np.uint8), tensor.name))
        done.append(name)
    for writer in quantized:
        name, own = writer.output[0], _zeros_of_quantized(writer, held)
        if own is None or (known := zeros_of_readers(name)) is None:
            continue
        for node, place, zeros in [*known, (writer, 2, own)]:
            _set_zeros(graph, node, place, zeros, f"{name}{_SUFFIX}{len(graph.initializer)}")
        for attribute in writer.attribute:
            if attribute.name == "output_dtype":
                attribute.i = TensorProto.UINT8
        declared = [value for value in graph.value_info if value.name != name]
        del graph.value_info[:]
        graph.value_info.extend(declared)
        done.append(name)
    return done


def _zeros_of_quantized(node: NodeProto, held: Mapping[str, TensorProto]) -> np.ndarray | None:
    """The zero points of what is quantized to int8; None where it is not, or they are not known."""
    if len(node.input) > 2 and node.input[2]:
        given = held.get(node.input[2])
        is_int8 = given is not None and given.data_type == TensorProto.INT8 and is_whole(given)
        return numpy_helper.to_array(given) if is_int8 else None  # type: ignore[arg-type]
    scales = held.get(node.input[1])
    is_int8 = any(a.name == "output_dtype" and a.i == TensorProto.INT8 for a in node.attribute)
    return np.zeros(tuple(scales.dims), np.int8) if is_int8 and scales is not None else None


def _multiplies_signed(node: NodeProto, signed: Collection[str]) -> bool:
    """Whether a node multiplies weights by int8, which ONNX Runtime then computes exactly, as far as its type is known."""
    place = _OF_ONE_TYPE.get(node.op_type)
    return place is not None and any(name in signed for name in (*node.input[:1], *node.input[place : place + 1]))


def _zeros(node: NodeProto, place: int, held: Mapping[str, TensorProto]) -> tuple[int, np.ndarray] | None:
    """The place and values of the zero points of weights that a node reads; None where they are not known, or it reads something else."""
    for weights, scale, zeros in _PLACES.get(node.op_type, ()):
        if weights != place:
            continue
        if len(node.input) > zeros and node.input[zeros]:
            given = held.get(node.input[zeros])
            return None if given is None or not is_whole(given) else (zeros, numpy_helper.to_array(given))
        scales = held.get(node.input[scale]) if scale >= 0 else None
        if scale >= 0 and scales is None:
            return None
        return zeros, np.zeros(tuple(scales.dims) if scales is not None else (), np.int8)
    return None


def _set_zeros(graph: GraphProto, node: NodeProto, place: int, zeros: np.ndarray, name: str) -> None:
    shifted = (zeros.astype(np.int16) + _SHIFT).astype(np.uint8)
    graph.initializer.append(numpy_helper.from_array(shifted, name))
    node.input.extend([""] * (place + 1 - len(node.input)))
    node.input[place] = name
