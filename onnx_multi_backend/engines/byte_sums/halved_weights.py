# SPDX-License-Identifier: Apache-2.0
"""Weights of OpenVINO's convolutions of signed bytes by signed bytes, where sums of products would saturate: see `byte_products`.

So that they do not, oneDNN halves the weights and rounds them, however small they are: results are off by some hundredths of the largest one. Its
products of matrices and transposed convolutions are exact, and so are convolutions of bytes whose zero point is not 0, and of unsigned ones. Measured
with OpenVINO 2025.4 and 2026.4, with AVX2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.models.contents import Contents

_QUANTIZED = "QLinearConv"
#: What makes other numbers of bytes than those it reads, so that these are not what a convolution behind it multiplies.
_COMPUTING = frozenset(
    """Conv ConvTranspose DequantizeLinear Einsum GRU Gemm If LSTM LayerNormalization Loop MatMul QLinearConv QLinearMatMul QuantizeLinear RNN Scan Sigmoid
    Softmax Tanh""".split()
)


def may_be_halved(contents: Contents) -> bool:
    """Whether a model may hold such weights."""
    return contents.has({_QUANTIZED}) or (contents.has({"Conv"}) and contents.has({"DequantizeLinear"}))


class Halved:
    """Tells of such weights in a graph.

    Parameters
    ----------
    nodes : iterable of NodeProto
        Of the graph, and of those around it.
    held : mapping of str to TensorProto
        Its constants.
    types : mapping of str to int
        The element types of values, as far as they are declared.
    """

    def __init__(self, nodes: Iterable[NodeProto], held: Mapping[str, TensorProto], types: Mapping[str, int]) -> None:
        nodes = list(nodes)
        self._held, self._types = held, dict(types)
        self._makers = {name: node for node in nodes for name in node.output}
        for node in nodes:
            if node.op_type == "Cast":
                self._types.setdefault(
                    node.output[0], next((a.i for a in node.attribute if a.name == "to"), TensorProto.UNDEFINED)
                )
        self._weights = {
            name
            for node in nodes
            if node.op_type == "Conv" and any(map(self._is_signed, self._before(node.input[0])))
            for weights in self._before(node.input[1])
            for name in weights.output
        }

    def __call__(self, node: NodeProto) -> bool:
        """Whether a node dequantizes such weights, or is a convolution that has them."""
        if node.op_type == _QUANTIZED:
            return self._is_signed(node)
        return node.op_type == "DequantizeLinear" and node.output[0] in self._weights

    def _before(self, name: str) -> Iterator[NodeProto]:
        """The nodes that dequantize what a value is moved or chosen from."""
        waiting, seen = [name], {name}
        while waiting:
            maker = self._makers.get(waiting.pop())
            if maker is None:
                continue
            if maker.op_type == "DequantizeLinear":
                yield maker
            if maker.op_type not in _COMPUTING:
                new = {read for read in maker.input if read} - seen
                seen |= new
                waiting += new

    def _is_signed(self, node: NodeProto) -> bool:
        """Whether a node reads bytes of a run that are signed, as far as is known."""
        if node.input[0] in self._held:
            return False
        zero = node.input[2] if len(node.input) > 2 else ""
        if zero in self._held:
            return self._held[zero].data_type == TensorProto.INT8
        kinds = [self._types.get(name, TensorProto.UNDEFINED) for name in (node.input[0], zero) if name]
        return TensorProto.INT8 in kinds or not any(kinds)
