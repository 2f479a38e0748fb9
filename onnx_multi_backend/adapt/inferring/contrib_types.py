# SPDX-License-Identifier: Apache-2.0
"""Types of what operators of ONNX Runtime make, of which onnx infers nothing. Source: ONNX Runtime's ContribOperators.md.

Each function reads what is known of a node's inputs, and yields the place, the element type and the sizes of results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from onnx import AttributeProto, TensorProto, TensorShapeProto, TypeProto
from onnx.shape_inference import InferenceContext

Dim = TensorShapeProto.Dimension
Result = tuple[int, int, Sequence[Dim]]

_MATRIX, _ROWS, _HEADS, _PACKED = 2, 3, 4, 5


class Read:
    """What is known of a node."""

    def __init__(self, context: InferenceContext) -> None:
        self._context = context

    def _tensor(self, place: int) -> TypeProto.Tensor | None:
        if not self.has(place):
            return None
        kind = self._context.get_input_type(place)
        return kind.tensor_type if kind is not None and kind.HasField("tensor_type") else None

    def kind(self, place: int) -> int:
        """The element type of an input; 0 where it is not known."""
        tensor = self._tensor(place)
        return tensor.elem_type if tensor is not None else 0

    def dims(self, place: int) -> list[Dim] | None:
        """The sizes of an input; None where its rank is not known."""
        tensor = self._tensor(place)
        return list(tensor.shape.dim) if tensor is not None and tensor.HasField("shape") else None

    def has(self, place: int) -> bool:
        """Whether an input is given."""
        return place < self._context.get_num_inputs() and self._context.has_input(place)

    def integer(self, name: str) -> int:
        """The value of an attribute; 0 where it is left out, or of another type."""
        given = self._context.get_attribute(name)
        return given.i if given is not None and given.type == AttributeProto.INT else 0

    def integers(self, name: str) -> list[int]:
        """The values of an attribute; none where it is left out, or of another type."""
        given = self._context.get_attribute(name)
        return list(given.ints) if given is not None and given.type == AttributeProto.INTS else []


def _open(count: int) -> list[Dim]:
    return [Dim() for _ in range(count)]


def _size(dim: Dim) -> int:
    return dim.dim_value if dim.HasField("dim_value") else 0


def _dim(size: int) -> Dim:
    return Dim(dim_value=size) if size > 0 else Dim()


def _keeping(node: Read, typed_as: int = 0) -> Iterator[Result]:
    """The sizes of the first input, and the type of the input at a place."""
    dims = node.dims(0)
    if dims is not None:
        yield 0, node.kind(typed_as), dims


def _skipping(node: Read) -> Iterator[Result]:
    dims = node.dims(0)
    if dims is not None:
        yield from ((place, node.kind(0), dims) for place in (0, 3))


def _keeping_rank(node: Read) -> Iterator[Result]:
    dims = node.dims(0)
    if dims is not None:
        yield 0, node.kind(0), _open(len(dims))


def _attention(node: Read, typed_as: int = 0) -> Iterator[Result]:
    """Of inputs that are projected by the weights that stand second."""
    dims, weights, sizes = node.dims(0), node.dims(1), node.integers("qkv_hidden_sizes")
    kind = node.kind(typed_as)
    if dims is not None and len(dims) == _ROWS:
        whole = _size(weights[-1]) if weights else 0
        yield 0, kind, [*dims[:2], _dim(sizes[-1] if sizes else whole // 3)]
        yield 1, kind, _open(5)


def _multi_head_attention(node: Read) -> Iterator[Result]:
    dims, key, value = (node.dims(place) for place in range(3))
    if dims is None or len(dims) not in (_ROWS, _PACKED):
        return
    if len(dims) == _PACKED:
        width = _size(dims[2]) * _size(dims[4])
    elif key is not None and len(key) == _PACKED:
        width = _size(key[2]) * _size(key[4])
    elif value is not None and len(value) == _HEADS:
        width = _size(value[1]) * _size(value[3])
    else:
        width = _size(value[-1]) if value is not None and len(value) == _ROWS else 0
    yield 0, node.kind(0), [*dims[:2], _dim(width)]
    yield from ((place, node.kind(0), [dims[0], *_open(3)]) for place in (1, 2))


def _group_query_attention(node: Read) -> Iterator[Result]:
    dims = node.dims(0)
    if dims is None or len(dims) != _ROWS:
        return
    width, heads, own = _size(dims[-1]), node.integer("num_heads"), node.integer("kv_num_heads")
    if not node.has(1):  # keys and values lie behind the queries
        width = width // (heads + 2 * own) * heads if heads > 0 and own > 0 else 0
    yield 0, node.kind(0), [*dims[:2], _dim(width)]
    yield from ((place, node.kind(place + 2) or node.kind(0), [dims[0], *_open(3)]) for place in (1, 2))


def _embedding(node: Read) -> Iterator[Result]:
    dims, words = node.dims(0), node.dims(2)
    if dims is not None and words is not None and len(dims) == len(words) == _MATRIX:
        for place in (0, 2):
            yield place, node.kind(2), [*dims, words[-1]]
        yield 1, TensorProto.INT32, [dims[0]]


def _convolution(node: Read) -> Iterator[Result]:
    dims, weights = node.dims(0), node.dims(1)
    if dims is not None and len(dims) > _MATRIX:
        channels = weights[0] if weights else Dim()
        yield 0, node.kind(0), [dims[0], channels, *_open(len(dims) - 2)]


def _gemm(node: Read) -> Iterator[Result]:
    yield 0, node.kind(0), _open(_MATRIX)


def _quantized_gemm(node: Read) -> Iterator[Result]:
    yield 0, node.kind(8) or node.kind(1), _open(_MATRIX)


def _broadcast(node: Read, places: tuple[int, int], kind: int, least: int = 0) -> Iterator[Result]:
    ranks = [len(dims) for place in places if (dims := node.dims(place)) is not None]
    if len(ranks) == len(places) and min(ranks) >= least:
        yield 0, kind, _open(max(ranks))


def _product(node: Read) -> Iterator[Result]:
    return _broadcast(node, (0, 1), node.kind(0), _MATRIX)


def _product_to_float(node: Read) -> Iterator[Result]:
    return _broadcast(node, (0, 1), node.kind(2), _MATRIX)


def _quantized_sum(node: Read) -> Iterator[Result]:
    return _broadcast(node, (0, 3), node.kind(0))


def _rows(node: Read) -> Iterator[Result]:
    dims = node.dims(0)
    if dims:
        yield 0, node.kind(0), [*dims[:-1], _dim(node.integer("N"))]


def _lstm(node: Read) -> Iterator[Result]:
    """Of sequences, batches and features; the weights' first axis is that of the directions."""
    dims, weights, hidden = node.dims(0), node.dims(1), _dim(node.integer("hidden_size"))
    if dims is not None and weights is not None and len(dims) == len(weights) == _ROWS:
        yield 0, node.kind(0), [dims[0], weights[0], dims[1], hidden]
        yield from ((place, node.kind(0), [weights[0], dims[1], hidden]) for place in (1, 2))


_KEEPING = (
    *("BiasGelu", "FastGelu", "Gelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu"),
    "RotaryEmbedding",
)
_OF_MICROSOFT: Mapping[str, Callable[[Read], Iterator[Result]]] = {
    **dict.fromkeys(_KEEPING, _keeping),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skipping),
    **dict.fromkeys(("Pad", "QLinearAveragePool", "QLinearGlobalAveragePool"), _keeping_rank),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _quantized_sum),
    **dict.fromkeys(("DynamicQuantizeMatMul", "FusedMatMul", "TransposeMatMul"), _product),
    "Attention": _attention,
    "DequantizeLinear": functools.partial(_keeping, typed_as=1),
    "DynamicQuantizeLSTM": _lstm,
    "EmbedLayerNormalization": _embedding,
    "FusedConv": _convolution,
    "FusedGemm": _gemm,
    "GroupQueryAttention": _group_query_attention,
    "MatMulIntegerToFloat": _product_to_float,
    "MatMulNBits": _rows,
    "MultiHeadAttention": _multi_head_attention,
    "QAttention": functools.partial(_attention, typed_as=3),
    "QGemm": _quantized_gemm,
    "QuantizeLinear": functools.partial(_keeping, typed_as=2),
}

#: By domain. Of the default one what ONNX Runtime alone has in some opsets or in all.
OPERATORS: Mapping[str, Mapping[str, Callable[[Read], Iterator[Result]]]] = {
    "com.microsoft": _OF_MICROSOFT,
    "": {"LayerNormalization": _keeping, "SimplifiedLayerNormalization": _keeping},
}
