# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a quantized product with a bias whose result is quantized with just the scale that the product has.

The scale of the values times that of the weights, divided by that of the result, is 1 there: OpenVINO leaves the multiplication out, and the sum gets
lost in integers. Behind the larger of a value and itself, which is that value, the result is quantized as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.kernels import PASSING
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled, has_zero_point
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
_ADDING = frozenset({"Add", "Sub", "Sum"})
#: What may stand between the weights and their DequantizeLinear.
_MOVING = frozenset({"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_REASON = "OpenVINO would lose the sum, since the scales of the product and of its result are the same"


def sums_kept(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such results are kept apart from their QuantizeLinear; None where there are none."""
    if not contents.has(_PRODUCTS) or not {"DequantizeLinear", "QuantizeLinear"} <= contents.by_operator.keys():
        return None
    if not contents.has(_ADDING | {"Gemm"}) or (flat := flat_for(contents)) is None:
        return None
    search = _Search(walked_of(contents))
    found = [
        {place: 0 for place, node in enumerate(graph.node) if search.is_meant(node)} for graph in search.walked.graphs
    ]
    return inputs_apart(flat, found, f"{CAST}sum", "sums_kept", "quantized behind what makes it", _REASON)


class _Search:
    def __init__(self, walked: Walked) -> None:
        self.walked = walked
        self._scaled = Scaled(walked)

    def is_meant(self, node: NodeProto) -> bool:
        """Whether a QuantizeLinear has the scale of a product with a bias that it reads."""
        if node.op_type != "QuantizeLinear" or canonical(node.domain) or len(node.input) < 2:
            return False
        result = self.walked.array(node.input[1])
        return any(_may_be_one(*scales, result) for scales in self._scales(node.input[0]))

    def _scales(self, name: str) -> Iterator[tuple[np.ndarray | None, np.ndarray | None]]:
        """The scales of both factors of the products with a bias that a value comes of."""
        todo, seen = [(name, False)], {(name, False)}
        while todo:
            name, is_sum = todo.pop()
            maker = self.walked.makers.get(name)
            if maker is None or canonical(maker.domain):
                continue
            if maker.op_type in _PRODUCTS:
                if is_sum or (maker.op_type == "Gemm" and len(maker.input) > 2 and maker.input[2]):
                    yield from self._of_product(maker)
                continue
            if maker.op_type not in PASSING | _ADDING | {"Transpose"}:
                continue
            steps = {(read, is_sum or maker.op_type in _ADDING) for read in maker.input if read} - seen
            seen |= steps
            todo += steps

    def _of_product(self, node: NodeProto) -> Iterator[tuple[np.ndarray | None, np.ndarray | None]]:
        for i in (0, 1):
            weights = self._weights(node.input[1 - i]) if len(node.input) > 1 else None
            if weights is not None:
                for source in self._scaled.sources(node.input[i]):
                    if not has_zero_point(source, self.walked):
                        yield self.walked.array(source.input[1]), self.walked.array(weights.input[1])

    def _weights(self, name: str) -> NodeProto | None:
        """The DequantizeLinear of constants that a value comes of."""
        while (maker := self.walked.makers.get(name)) is not None and not canonical(maker.domain):
            if maker.op_type == "DequantizeLinear":
                return maker if maker.input[0] in self.walked.fixed else None
            if maker.op_type not in _MOVING:
                return None
            name = maker.input[0]
        return None


def _may_be_one(values: np.ndarray | None, weights: np.ndarray | None, result: np.ndarray | None) -> bool:
    """Whether these scales may cancel each other out, as far as they are known."""
    if values is None or weights is None or result is None:
        return True
    product = np.multiply.outer(values.astype(np.float32), weights.astype(np.float32)).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = np.divide.outer(product, result.astype(np.float32).ravel())
    return bool(np.any(np.abs(quotients - 1) < 1e-6))
