# SPDX-License-Identifier: Apache-2.0
"""Around what ONNX Runtime (1.24 to 1.32) makes of a quantized product or convolution whose bias does not fit it.

Its kernels add int32 to int32, and do not look at the scale of a bias: it is taken for the product of the other two. Before 1.28 `alpha` of a
Gemm counts for the bias too. Nothing is fused with the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, maker_before, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.ort.scales_apart import MOVING
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import is_whole

_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
_PASS = "biases_apart"
_REASON = "ONNX Runtime would add its integers to those of the product, whose scale is another"
_FACTOR = "ONNX Runtime would multiply the bias by alpha too"


def biases_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these biases are kept from fusions; None where there are none."""
    if not contents.has({"DequantizeLinear"}) or not contents.has(_PRODUCTS):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    scales = _Scales(walked)
    misfits = scales.misfits()
    factors = [{i: 0 for i, node in enumerate(graph.node) if scales.has_a_factor(node)} for graph in graphs]
    made = inputs_apart(flat, factors, f"{CAST}factor", _PASS, "kept in floating point", _FACTOR)
    model = flat if made is None else made.model
    places = [
        {i: (0,) for i, node in enumerate(graph.node) if not misfits.isdisjoint(node.output)}
        for graph in inner_first(model.graph)
    ]
    found = outputs_apart(model, places, f"{CAST}bias", _PASS, _REASON)
    if made is None or found is None:
        return made or found
    return Rewritten(found.model, made.changes + found.changes, made.added | found.added)


class _Scales:
    """Compares what is added to products with their scales."""

    def __init__(self, walked: Walked) -> None:
        self._constants = walked.fixed
        self._makers = walked.makers
        self._nodes = [node for graph in walked.graphs for node in graph.node if not canonical(node.domain)]
        self._multiplies = applies({"onnxruntime": "<1.28"})

    def has_a_factor(self, node: NodeProto) -> bool:
        """Whether it is a Gemm of quantized operands whose `alpha` would count for its bias."""
        if not self._multiplies or node.op_type != "Gemm" or canonical(node.domain) or not any(node.input[2:]):
            return False
        if not any(a.name == "alpha" and a.f != 1 for a in node.attribute):
            return False
        return all(self._dequantizing(name) is not None for name in node.input[:2])

    def misfits(self) -> set[str]:
        """The results of the nodes that dequantize biases which do not fit."""
        return {bias.output[0] for bias in map(self._misfit, self._added()) if bias is not None}

    def _added(self) -> Iterator[tuple[str, str, str]]:
        """The operands of products, and what is added to them."""
        for node in self._nodes:
            if node.op_type in _PRODUCTS and any(node.input[2:]):
                yield node.input[0], node.input[1], node.input[2]
            elif node.op_type == "Add":
                for name, other in (tuple(node.input), tuple(reversed(node.input))):
                    product = self._makers.get(name)
                    if product is not None and product.op_type == "MatMul" and not canonical(product.domain):
                        yield product.input[0], product.input[1], other

    def _misfit(self, operands: tuple[str, str, str]) -> NodeProto | None:
        """What dequantizes a bias whose scale is not the product of the other two, or may not be."""
        first, second, bias = map(self._dequantizing, operands)
        if first is None or second is None or bias is None:
            return None
        scales = [_numbers(self._constants, node.input[1]) for node in (first, second, bias)]
        x, w, b = (None if scale is None else scale.ravel() for scale in scales)
        if x is None or w is None or b is None:
            return bias
        wanted = x * w if len(x) == 1 else None
        fits = wanted is not None and len(b) in (1, len(wanted)) and np.allclose(b, wanted, rtol=1e-4, atol=0)
        return None if fits else bias

    def _dequantizing(self, name: str) -> NodeProto | None:
        maker = maker_before(name, self._makers, MOVING)
        is_meant = maker is not None and maker.op_type == "DequantizeLinear" and not canonical(maker.domain)
        return maker if is_meant else None


def _numbers(constants: Mapping[str, TensorProto | None], name: str) -> np.ndarray | None:
    tensor = constants.get(name)
    return numpy_helper.to_array(tensor).astype(np.float64) if tensor is not None and is_whole(tensor) else None
