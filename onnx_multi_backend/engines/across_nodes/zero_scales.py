# SPDX-License-Identifier: Apache-2.0
"""The scale of a DynamicQuantizeLinear of zeros, which is 0 in OpenVINO (2025.4, 2026.4), and 1 in ONNX.

What the quantized values, which are 0 then, are multiplied with does not matter: the scale is left as it is where that is all that becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_QUANTIZING = "DynamicQuantizeLinear"
#: By operator, the place of the scale of its first operand.
_SCALED = {"DequantizeLinear": 1, "QLinearConv": 1, "QLinearMatMul": 1}
_PRODUCTS = frozenset({"ConvInteger", "MatMulInteger"})
_ZERO, _ONE = (numpy_helper.from_array(np.array(value, np.float32)) for value in (0, 1))
_REASON = "OpenVINO's scale of zeros is 0, and ONNX's is 1"


def scales_of_zeros(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such scales are 1; None where they do not matter."""
    if not contents.has({_QUANTIZING}):
        return None
    walked = walked_of(contents)
    found = [_places(graph, i, walked) for i, graph in enumerate(walked.graphs)]
    if not any(found):
        return None
    taken, changes = names_taken(walked.flat), list[Adaptation]()

    def write(node: NodeProto, _: bool, kept: dict[str, str]) -> Iterator[NodeProto]:
        where = f"{node.op_type} {node.name or node.output[0]!r}"
        changes.append(Adaptation("scales_of_zeros", where, "a scale of 0 becomes 1", _REASON))
        scale, (raw, zero, one, is_zero) = (
            node.output[1],
            (unused(f"{node.output[1]}{CAST}{i}", taken) for i in range(4)),
        )
        node.output[1] = raw
        yield node
        yield helper.make_node("Constant", [], [zero], name=zero, value=_ZERO)
        yield helper.make_node("Constant", [], [one], name=one, value=_ONE)
        yield helper.make_node("Equal", [raw, zero], [is_zero], name=is_zero)
        yield helper.make_node("Where", [is_zero, one, raw], [scale], name=f"{scale}{CAST}scale")

    return written(walked.flat, found, write, changes)


def _places(graph: GraphProto, number: int, walked: Walked) -> dict[int, bool]:
    """The places of these nodes whose scale matters."""
    results = {value.name for value in graph.output}
    found: dict[int, bool] = {}
    for place, node in enumerate(graph.node):
        if _is(node, _QUANTIZING) and len(node.output) > 1 and node.output[1]:
            search = _Search(node.output[0], results, number, walked)
            if search.matters(node.output[1]):
                found[place] = True
    return found


class _Search:
    """Looks at what becomes of a scale.

    Parameters
    ----------
    quantized : str
        What is quantized with it.
    results : set of str
        Of its graph.
    number : int
        The place of the graph in `walked.graphs`.
    walked : Walked
    """

    def __init__(self, quantized: str, results: set[str], number: int, walked: Walked) -> None:
        self._quantized, self._results, self._number, self._walked = quantized, results, number, walked

    def matters(self, name: str) -> bool:
        """Whether a scale, or a multiple of it, is more than a factor of what is quantized with it."""
        others = (readers for i, readers in enumerate(self._walked.readers) if i != self._number)
        if name in self._results or any(name in readers for readers in others):
            return True
        return any(self._matters_to(node, name) for node in self._walked.readers[self._number].get(name, ()))

    def _matters_to(self, node: NodeProto, name: str) -> bool:
        if _is(node, *_SCALED):
            return list(node.input).index(name) != _SCALED[node.op_type] or node.input[0] != self._quantized
        if not _is(node, "Mul") or len(node.input) != 2:
            return True
        other = node.input[0] if node.input[1] == name else node.input[1]
        if other in self._walked.fixed:
            return self.matters(node.output[0])
        return not self._is_product(other)

    def _is_product(self, name: str) -> bool:
        """Whether a value is a product of what is quantized, as floating-point numbers."""
        maker = self._walked.makers.get(name)
        if maker is None or not _is(maker, "Cast"):
            return False
        before = self._walked.makers.get(maker.input[0])
        return before is not None and _is(before, *_PRODUCTS) and self._quantized in before.input[:2]


def _is(node: NodeProto, *operators: str) -> bool:
    return node.op_type in operators and not canonical(node.domain)
