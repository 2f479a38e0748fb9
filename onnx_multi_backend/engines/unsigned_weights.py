# SPDX-License-Identifier: Apache-2.0
"""Int8 weights as uint8, where products of unsigned and signed bytes would saturate: see `byte_products`.

The weights and their zero points are 128 larger: the numbers they stand for are the same, and both engines add products of unsigned bytes
exactly. (ONNX Runtime's option ``session.x64quantprecision`` does this too. Up to 1.32 it fails where two products share a weight, and where a
DequantizeLinear has a scale for each channel and no zero points.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines import byte_products
from onnx_multi_backend.models.graph_walk import constants_of, names_read, subgraphs
from onnx_multi_backend.models.tensors import is_whole

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


def with_unsigned_weights(model: ModelProto, operators: Collection[str]) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of a model, which has all its weights, with such ones unsigned; the model itself where there are none.

    Parameters
    ----------
    operators : collection of str
        Those whose weights are changed.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    names = [*_shift(copy.graph, operators)]
    if not names:
        return model, ()
    reason = "sums of two products of bytes saturate on this processor, which has no VNNI"
    return copy, tuple(Adaptation("unsigned_weights", name, "int8 written as uint8", reason) for name in names)


def _shift(graph: GraphProto, operators: Collection[str]) -> Sequence[str]:
    held = constants_of(graph)
    readers: defaultdict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
    elsewhere = {value.name for value in graph.output}
    done: list[str] = []
    for node in graph.node:
        for place, name in enumerate(node.input):
            readers[name].append((node, place))
        for inner in subgraphs(node):
            elsewhere.update(names_read(inner))
            done += _shift(inner, operators)
    for name, tensor in held.items():
        if not byte_products.saturating([tensor]):
            continue
        found = [_zeros(node, place, held) for node, place in readers[name]]
        known = [zeros for zeros in found if zeros is not None]
        others = {node.op_type for node, _ in readers[name]}.difference(operators)
        if name in elsewhere or others or len(known) < len(found):
            continue
        for (node, _), (place, zeros) in zip(readers[name], known, strict=True):
            _set_zeros(graph, node, place, zeros, f"{name}{_SUFFIX}{len(graph.initializer)}")
        shifted = numpy_helper.to_array(tensor).astype(np.int16) + _SHIFT
        tensor.CopyFrom(numpy_helper.from_array(shifted.astype(np.uint8), tensor.name))
        done.append(name)
    return done


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
