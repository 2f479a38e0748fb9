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
from onnx_multi_backend.engines.across_nodes.apart import names_taken, unused, written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import Walked, walked_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.plausible import expands_too_far

_QUANTIZING = "DynamicQuantizeLinear"
#: By operator, the place of the scale of its first operand.
_SCALED = {"DequantizeLinear": 1, "QLinearConv": 1, "QLinearMatMul": 1}
_PRODUCTS = frozenset({"ConvInteger", "MatMulInteger"})
_ZERO, _ONE = (numpy_helper.from_array(np.array(value, np.float32)) for value in (0, 1))
_REASON = "OpenVINO's scale of zeros is 0, and ONNX's is 1"


def scales_of_zeros(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such scales are 1; None where they do not matter."""
    if not contents.has({_QUANTIZING}) or expands_too_far(contents.model):
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
    nodes = ((place, node) for place, node in enumerate(graph.node) if _is(node, _QUANTIZING))
    return {
        place: True
        for place, node in nodes
        if len(node.output) > 1 and node.output[1] and _matters(node.output[1], results, number, walked)
    }


def _matters(name: str, results: set[str], number: int, walked: Walked) -> bool:
    """Whether a scale is more than a factor of what is quantized with it."""
    others = (readers for i, readers in enumerate(walked.readers) if i != number)
    if name in results or any(name in readers for readers in others):
        return True
    for node in walked.readers[number].get(name, ()):
        if _is(node, *_SCALED):
            if list(node.input).index(name) != _SCALED[node.op_type]:
                return True
        elif not _is(node, "Mul") or len(node.input) != 2:
            return True
        else:
            other = node.input[0] if node.input[1] == name else node.input[1]
            if other in walked.fixed:
                if _matters(node.output[0], results, number, walked):
                    return True
            elif not _is_product(other, walked):
                return True
    return False


def _is_product(name: str, walked: Walked) -> bool:
    """Whether a value is a product of quantized ones, as floating-point numbers."""
    maker = walked.makers.get(name)
    if maker is None or not _is(maker, "Cast"):
        return False
    before = walked.makers.get(maker.input[0])
    return before is not None and _is(before, *_PRODUCTS)


def _is(node: NodeProto, *operators: str) -> bool:
    return node.op_type in operators and not canonical(node.domain)
