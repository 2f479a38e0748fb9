# SPDX-License-Identifier: Apache-2.0
"""Models with Q/DQ nodes that OpenVINO's low-precision transformations (2025.4, 2026.4, all processors) compute wrongly as a whole.

No node kept apart helps, or the process ends, where

- a convolution's first operand are quantized constants;
- a recurrent layer has dequantized weights: DynamicQuantizeLSTM, which OpenVINO's frontend writes so, among them;
- what is computed is quantized to uint4 before a product with quantized weights;
- Pad is behind quantized values that were concatenated;
- Split takes dequantized constants apart whose zero points are not 0: the parts are all 0, or shifted. So are those that Gather or Slice takes for
  the weights of a ConvTranspose.

Without these transformations OpenVINO computes Q/DQ nodes as they are written, in floating point.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import is_whole

#: OpenVINO's property that switches the transformations off; its documentation does not list it.
SWITCH = "LP_TRANSFORMS_MODE"

_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_PRODUCTS = frozenset({"Gemm", "MatMul"})
#: What computes sums: what comes out has another scale, which no transformation moves on.
_ENDS = _CONVOLUTIONS | _PRODUCTS | {"Shape", "Size"}
_TAKING = frozenset({"Gather", "Slice", "Split"})
_DYNAMIC = "DynamicQuantizeLSTM"
_OPERATORS = _CONVOLUTIONS | LAYERS | _PRODUCTS | {"Pad", "Split"}
_CHANGE = "Q/DQ nodes are computed in floating point"
_REASON = "OpenVINO's low-precision transformations compute this form wrongly"


def in_floating_point(contents: Contents) -> tuple[Adaptation, ...]:
    """What is told where OpenVINO must not compute a model in 8 bits; nothing for another model."""
    if not contents.has({"DequantizeLinear"}) or not contents.has({*_OPERATORS, _DYNAMIC}):
        return ()
    where = next(_Search(walked_of(contents), quantizes=contents.has({"QuantizeLinear"})).distrusted(), None)
    return () if where is None else (Adaptation("low_precision", where, _CHANGE, _REASON),)


class _Search:
    def __init__(self, walked: Walked, *, quantizes: bool) -> None:
        self._walked = walked
        self._quantizes = quantizes

    def distrusted(self) -> Iterator[str]:
        """The nodes for which."""
        for nodes in self._walked.views:
            for node in nodes:
                if (node.operator in _OPERATORS and self._is_wrong(node)) or (
                    self._quantizes and node.proto.op_type == _DYNAMIC
                ):
                    yield f"{node.proto.op_type} {node.proto.name or node.output[0]!r}"

    def _is_wrong(self, node: NodeView) -> bool:
        if node.operator in LAYERS:
            return self._quantizes and any(
                self._is_constant(name) and self._is_quantized(name) for name in node.input[1:3]
            )
        if node.operator in _PRODUCTS:
            return any(map(self._is_of_four_bits, node.input[:2]))
        if node.operator == "Split":
            return self._is_constant(node.input[0]) and any(map(self._is_shifted, self._before(node.input[0])))
        if node.operator == "Pad":
            return self._is_joined(node.input[0])
        if node.operator == "ConvTranspose" and self._is_taken(node.input[1]):
            return True
        return self._is_constant(node.input[0]) and self._is_quantized(node.input[0])

    def _is_of_four_bits(self, name: str) -> bool:
        """Whether it is dequantized from uint4 that are computed."""
        if self._is_constant(name):
            return False
        zeros = (
            maker.input[2]
            for maker in self._before(name)
            if maker.op_type == "DequantizeLinear" and len(maker.input) > 2
        )
        held = (self._walked.fixed.get(zero) for zero in zeros)
        return any(zero is not None and zero.data_type == TensorProto.UINT4 for zero in held)

    def _is_constant(self, name: str) -> bool:
        return name in self._walked.fixed

    def _is_quantized(self, name: str) -> bool:
        return any(maker.op_type == "DequantizeLinear" for maker in self._before(name))

    def _is_taken(self, name: str) -> bool:
        """Whether it is a part of dequantized constants whose zero points are not 0."""
        before = list(self._before(name))
        return any(maker.op_type in _TAKING for maker in before) and any(map(self._is_shifted, before))

    def _is_joined(self, name: str) -> bool:
        kinds = {maker.op_type for maker in self._before(name)}
        return kinds >= {"Concat", "DequantizeLinear"}

    def _is_shifted(self, node: NodeProto) -> bool:
        """Whether it dequantizes with a zero point that is not known to be 0."""
        if node.op_type != "DequantizeLinear" or len(node.input) < 3 or not node.input[2]:
            return False
        zero = self._walked.fixed.get(node.input[2])
        return zero is None or not is_whole(zero) or bool(np.any(numpy_helper.to_array(zero)))

    def _before(self, name: str) -> Iterator[NodeProto]:
        """The nodes that a value comes through, up to those that compute sums."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            maker = self._walked.makers.get(name := todo.pop())
            if maker is None or name in seen or maker.op_type in _ENDS or canonical(maker.domain):
                continue
            seen.add(name)
            yield maker
            todo += maker.input[:1] if maker.op_type != "Concat" else maker.input
