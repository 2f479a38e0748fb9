# SPDX-License-Identifier: Apache-2.0
"""Int8 weights as uint8, where sums of products of unsigned and signed bytes would saturate: see `byte_products`.

The weights and their zero points are 128 larger: the numbers they stand for are the same, and both engines add products of unsigned bytes
exactly. So are those of what the model itself quantizes to int8, weights or not, where that is dequantized alone: the engine then quantizes to
uint8. (ONNX Runtime's option ``session.x64quantprecision`` does this too. Up to 1.32 it fails where two products share a weight, and where a
DequantizeLinear has a scale for each channel and no zero points.)
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.byte_sums import byte_products
from onnx_multi_backend.engines.byte_sums.halved_weights import Halved
from onnx_multi_backend.engines.byte_sums.unsigned_operands import shift_operands
from onnx_multi_backend.models.graph_walk import constants_of, names_read, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import is_whole

_REASON = "sums of two products of bytes saturate on this processor, which has no VNNI"

_SHIFT = 128
_SUFFIX = "/omb_unsigned"


class _Places(NamedTuple):
    """Which inputs are weights, their scales (-1: there are none) and their zero points."""

    weights: int
    scales: int
    zeros: int


#: OpenVINO adds products of the others exactly, but for a MatMulIntegerToFloat of what the model itself quantizes.
SATURATING_ON_OPENVINO = frozenset({"DequantizeLinear", "MatMulIntegerToFloat", "QLinearConv", "QLinearMatMul"})

_PLACES: Mapping[str, tuple[_Places, ...]] = {
    "ConvInteger": (),  # right, but for an image of int8: see `unsigned_operands`
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
    model: ModelProto, operators: Collection[str], *, on_openvino: bool, provider: bool = False
) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of a model, which has all its weights, with such ones unsigned; the model itself where there are none.

    Parameters
    ----------
    operators : collection of str
        Those whose weights are changed.
    on_openvino : bool
        Whether OpenVINO computes them, rather than ONNX Runtime.
    provider : bool
        Whether ONNX Runtime computes what its OpenVINO execution provider leaves.
    """
    copy = ModelProto()
    copy.CopyFrom(inlined(model))
    names = [
        *_Graph(copy.graph, operators, on_openvino).shifted(),
        *shift_operands(copy, operators, on_openvino=on_openvino, provider=provider),
    ]
    if not names:
        return model, ()
    return copy, tuple(Adaptation("unsigned_weights", name, "int8 written as uint8", _REASON) for name in names)


class _Weights(NamedTuple):
    """Weights that a node reads: their place, and the place and values of their zero points."""

    node: NodeProto
    place: int
    zero: int
    zeros: np.ndarray


class _Graph:
    """A graph whose weights are written unsigned, and what it can read of the graphs around it."""

    def __init__(
        self, graph: GraphProto, operators: Collection[str], on_openvino: bool, around: _Graph | None = None
    ) -> None:
        self._graph, self._operators, self._on_openvino = graph, operators, on_openvino
        self._around = around
        self._own = constants_of(graph)
        self._count: Iterator[int] = around._count if around else itertools.count()
        hidden = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
        outer: Mapping[str, TensorProto] = around._held if around else {}
        self._held: dict[str, TensorProto] = {
            name: tensor for name, tensor in outer.items() if name not in hidden
        } | self._own
        declared = (*graph.input, *graph.value_info)
        self._types: dict[str, int] = dict(around._types) if around else {}
        self._types |= {value.name: value.type.tensor_type.elem_type for value in declared}
        self._signed: set[str] = set(around._signed) if around else set()
        self._signed |= {v.name for v in declared if v.type.tensor_type.elem_type == TensorProto.INT8}
        self._signed |= {name for name, tensor in self._own.items() if tensor.data_type == TensorProto.INT8}
        self._dims: dict[str, tuple[int, ...]] = dict(around._dims) if around else {}
        self._dims |= {name: tuple(tensor.dims) for name, tensor in self._own.items()}
        for node in graph.node:
            for attribute in node.attribute if node.op_type == "Constant" else ():
                if attribute.name in ("value_float", "value_floats"):
                    self._dims[node.output[0]] = (len(attribute.floats),) if attribute.name[-1] == "s" else ()
        self._readers: Counter[str] = Counter(name for node in graph.node for name in node.input)
        self._readers.update(value.name for value in graph.output)

    def shifted(self) -> list[str]:
        """Write its weights and those of its subgraphs unsigned; their names."""
        done: list[str] = []
        for node in self._graph.node:
            for inner in subgraphs(node):
                done += _Graph(inner, self._operators, self._on_openvino, self).shifted()
                self._readers.update(names_read(inner))
        quantized = self._quantize_unsigned()
        wanted: defaultdict[str, list[_Weights]] = defaultdict(list)
        is_halved = Halved(self._nodes(), self._held, self._types) if self._on_openvino else None
        for node in self._graph.node:
            for weights in self._of(node, is_halved is not None and is_halved(node)):
                wanted[node.input[weights.place]].append(weights)
        for name, found in wanted.items():
            self._shift(name, found)
        return [*done, *quantized, *wanted]

    def _nodes(self) -> list[NodeProto]:
        """Those of the graphs around it, and its own."""
        return [*(self._around._nodes() if self._around else ()), *self._graph.node]

    def _of(self, node: NodeProto, is_halved: bool) -> list[_Weights]:
        """The weights of a node, where sums of their products may saturate, or these are halved; they are of one type, all or none of them are shifted."""
        places = _PLACES.get(node.op_type, ()) if node.op_type in self._operators else ()
        read = [place for place in places if len(node.input) > place.weights and node.input[place.weights]]
        tensors = [self._held.get(node.input[place.weights]) for place in read]
        known = [t for t in tensors if t is not None and t.data_type == TensorProto.INT8 and is_whole(t)]
        are_meant = is_halved or bool(byte_products.saturating(known))
        if len(known) < len(tensors) or not are_meant or self._multiplies_signed(node):
            return []
        found = [self._zeros(node, place) for place in read]
        return [weights for weights in found if weights is not None] if all(w is not None for w in found) else []

    def _shift(self, name: str, found: list[_Weights]) -> None:
        """Write weights unsigned for those that read them so; others keep them as they are."""
        tensor = self._held[name]
        shifted = numpy_helper.to_array(tensor).astype(np.int16) + _SHIFT
        if name in self._own and self._readers[name] == len(found):
            tensor.CopyFrom(numpy_helper.from_array(shifted.astype(np.uint8), tensor.name))
        else:
            made = self._add(name, shifted)
            for weights in found:
                weights.node.input[weights.place] = made
        for weights in found:
            self._raise(weights)

    def _quantize_unsigned(self) -> list[str]:
        """Quantize to uint8 what the graph quantizes to int8 and only dequantizes, or multiplies as weights; the names of what is made."""
        writers = [node for node in self._graph.node if node.op_type == "QuantizeLinear"]
        read = defaultdict[str, list[tuple[NodeProto, int]]](list)
        for node in self._graph.node if writers else ():
            for i, name in enumerate(node.input):
                read[name].append((node, i))
        done = []
        for writer in writers:
            made, own = writer.output[0], _zeros_of_quantized(writer, self._held)
            found = [self._zeros(n, p) for n, i in read[made] for p in self._places(n) if p.weights == i]
            known = [weights for weights in found if weights is not None]
            if own is None or len(known) < self._readers[made] or self._is_refused(writer, own):
                continue
            for weights in (*known, _Weights(writer, 0, 2, own)):
                self._raise(weights)
            for attribute in writer.attribute:
                if attribute.name == "output_dtype":
                    attribute.i = TensorProto.UINT8
            done.append(made)
        if done:
            declared = [value for value in self._graph.value_info if value.name not in done]
            del self._graph.value_info[:]
            self._graph.value_info.extend(declared)
        return done

    def _is_refused(self, writer: NodeProto, zeros: np.ndarray) -> bool:
        """Whether OpenVINO may refuse zero points that are not 0: those of activations with several scales."""
        return self._on_openvino and zeros.size > 1 and not zeros.any() and writer.input[0] not in self._held

    def _places(self, node: NodeProto) -> tuple[_Places, ...]:
        """Where a node reads weights that may be shifted one by one."""
        places = _PLACES.get(node.op_type, ()) if node.op_type in self._operators else ()
        return places if len(places) == 1 and not self._multiplies_signed(node) else ()

    def _multiplies_signed(self, node: NodeProto) -> bool:
        """Whether ONNX Runtime multiplies weights by int8, which is exact then, as far as its type is known."""
        place = None if self._on_openvino else _OF_ONE_TYPE.get(node.op_type)
        read = (*node.input[:1], *node.input[place : place + 1]) if place is not None else ()
        return any(name in self._signed for name in read)

    def _zeros(self, node: NodeProto, place: _Places) -> _Weights | None:
        """The zero points of weights that a node reads; None where they are not known."""
        if len(node.input) > place.zeros and node.input[place.zeros]:
            given = self._held.get(node.input[place.zeros])
            known = given is not None and is_whole(given)
            return _Weights(node, place.weights, place.zeros, numpy_helper.to_array(given)) if known else None  # type: ignore[arg-type]
        dims = self._dims.get(node.input[place.scales]) if place.scales >= 0 else ()
        return None if dims is None else _Weights(node, place.weights, place.zeros, np.zeros(dims, np.int8))

    def _raise(self, weights: _Weights) -> None:
        read = weights.node.input
        read.extend([""] * (weights.zero + 1 - len(read)))
        read[weights.zero] = self._add(read[weights.place], weights.zeros.astype(np.int16) + _SHIFT)

    def _add(self, of: str, values: np.ndarray) -> str:
        name = f"{of}{_SUFFIX}{next(self._count)}"
        tensor = numpy_helper.from_array(np.asarray(values, np.uint8), name)
        self._graph.initializer.append(tensor)
        self._held[name] = tensor
        return name


def _zeros_of_quantized(node: NodeProto, held: Mapping[str, TensorProto]) -> np.ndarray | None:
    """The zero points of what is quantized to int8; None where it is not, or they are not known."""
    if len(node.input) > 2 and node.input[2]:
        given = held.get(node.input[2])
        is_int8 = given is not None and given.data_type == TensorProto.INT8 and is_whole(given)
        return numpy_helper.to_array(given) if is_int8 else None  # type: ignore[arg-type]
    scales = held.get(node.input[1])
    is_int8 = any(a.name == "output_dtype" and a.i == TensorProto.INT8 for a in node.attribute)
    return np.zeros(tuple(scales.dims), np.int8) if is_int8 and scales is not None else None
