# SPDX-License-Identifier: Apache-2.0
"""Normalizations that a model writes out, which engines put one operator in the place of, though some differ from it.

``d = x - mean(x)``, or x itself, is divided by ``sqrt(mean(d * d) + epsilon)``, or ``sqrt(mean(d * d)) + epsilon``. ONNX Runtime (1.24 to 1.32) and
OpenVINO (2025.4, 2026.4) do not see that means without their axis are broadcast to columns, where rows and columns are as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from onnx import NodeProto

from onnx_multi_backend.models.graph_walk import canonical

#: What stands in such a pattern.
OPERATORS = frozenset({"ReduceMean", "Add", "Div"})
ROOTS = frozenset({"Pow", "Sqrt"})
#: What is left out before patterns are looked for, and a Cast that may be.
PASSED_OVER = frozenset({"Dropout", "Identity"})
_LEFT_OUT = PASSED_OVER | {"Cast"}
#: What reads the root of a normalization.
_DIVIDING = frozenset({"Add", "Div", "Mul", "Reciprocal"})
_SQUARES = frozenset({"Mul", "Pow"})


class WrittenNorm(NamedTuple):
    """A normalization that is written out.

    Attributes
    ----------
    mean : onnx.NodeProto or None
        What is subtracted; None where the squares themselves are normalized.
    square : onnx.NodeProto
    spread : onnx.NodeProto
        The mean of the squares.
    sum : onnx.NodeProto or None
        Of that and epsilon; None where the root is taken before.
    """

    mean: NodeProto | None
    square: NodeProto
    spread: NodeProto
    sum: NodeProto | None

    @property
    def reductions(self) -> list[NodeProto]:
        """The means that lose their axis."""
        return [node for node in (self.mean, self.spread) if node is not None and _loses_axis(node)]


def written_norms(nodes: Iterable[NodeProto]) -> Iterator[WrittenNorm]:
    """The normalizations among the nodes of a graph."""
    nodes = [node for node in nodes if not canonical(node.domain) and node.input and node.output]
    makers = {node.output[0]: node for node in nodes}
    divided = {name for node in nodes if node.op_type in _DIVIDING | _LEFT_OUT for name in node.input}
    for root in nodes:
        if root.op_type not in ROOTS or root.output[0] not in divided:
            continue
        sum_ = _maker(root.input[0], makers, {"Add"})
        for name in root.input[:1] if sum_ is None else sum_.input:
            spread = _maker(name, makers, {"ReduceMean"})
            square = _maker(spread.input[0], makers, _SQUARES) if spread is not None else None
            if spread is None or square is None:
                continue
            centred = _maker(square.input[0], makers, {"Sub"})
            mean = _maker(centred.input[1], makers, {"ReduceMean"}) if centred is not None else None
            yield WrittenNorm(mean, square, spread, sum_)


def _maker(name: str, makers: Mapping[str, NodeProto], operators: Iterable[str]) -> NodeProto | None:
    """The node of one of these operators that makes a value, perhaps before what engines leave out."""
    seen: set[str] = set()
    while (node := makers.get(name)) is not None and node.op_type in _LEFT_OUT and name not in seen:
        seen.add(name)  # an invalid model may go round in a circle
        name = node.input[0]
    return node if node is not None and node.op_type in operators else None


def _loses_axis(node: NodeProto) -> bool:
    return any(a.name == "keepdims" and not a.i for a in node.attribute)
