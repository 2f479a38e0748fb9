# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of arithmetic with a constant of one element that has more axes than what it is computed with.

Behind what moves elements (Reshape, Squeeze, Gather and others) or scales them, the constant is taken for a number, and the result lacks its axes: (6, 4)
for (1, 6, 4). The value is given these axes beforehand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TypeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.across_nodes.apart import flat_for, names_taken, unused, written
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC, PASSING
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import Walked, tensor_types, walked_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_COMPUTING = frozenset({"Add", "Div", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum"})
#: What may make a value without axes of one that has some, or of several.
_ENDING = frozenset(
    """ArgMax ArgMin ConcatFromSequence Det Einsum Gather If Loop MatMul OptionalGetElement ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape Scan SequenceAt Squeeze""".split()
)
_KEEPING = PASSING - _ENDING
#: Since this opset Unsqueeze has its axes as an input.
_AXES_AS_INPUT = 13
_PASS, _CHANGE = "axes_given_before", "what it reads is given the axes of its constant"
_REASON = "OpenVINO would take a constant of one element for a number, and the result would lack the constant's axes"


def axes_given_before(contents: Contents) -> Rewritten | None:
    """A copy of the model in which the value has as many axes as the constant; None where there is no such arithmetic."""
    if not contents.has(_COMPUTING) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    search = _Search(walked)
    found = [search.places(graph) for graph in walked.graphs]
    if not any(found):
        return None
    opset = opset_versions(flat).get("", 1)
    taken, changes = names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, lacking: int, kept: dict[str, str]) -> Iterator[NodeProto]:
        read, made = node.input[0], unused(f"{node.input[0]}{CAST}axes", taken)
        changes.append(Adaptation(_PASS, f"{node.op_type} {node.name or node.output[0]!r}", _CHANGE, _REASON))
        yield from _with_axes(read, made, lacking, opset)
        node.input[0] = made
        yield node

    return written(flat, found, write, changes)


def _with_axes(read: str, made: str, count: int, opset: int) -> list[NodeProto]:
    """A value with axes of one element before its own."""
    axes = list(range(count))
    if opset < _AXES_AS_INPUT:
        return [helper.make_node("Unsqueeze", [read], [made], name=made, axes=axes)]
    constant = f"{made}_places"
    return [
        helper.make_node("Constant", [], [constant], name=constant, value_ints=axes),
        helper.make_node("Unsqueeze", [read, constant], [made], name=made),
    ]


class _Search:
    """Looks for such arithmetic."""

    def __init__(self, walked: Walked) -> None:
        self._walked = walked
        self._no_numbers: set[str] = set()

    def places(self, graph: GraphProto) -> dict[int, int]:
        """The places of these nodes in a graph, with how many axes what each reads first lacks."""
        nodes = ((place, node) for place, node in enumerate(graph.node) if node.op_type in _COMPUTING)
        found = ((place, self._lacking(node)) for place, node in nodes if not canonical(node.domain))
        return {place: lacking for place, lacking in found if lacking}

    def _lacking(self, node: NodeProto) -> int:
        """How many axes what a node reads first lacks, as far as is known. OpenVINO computes nothing of an unknown number of axes."""
        fixed, makers = self._walked.fixed, self._walked.makers
        if len(node.input) < 2 or node.input[0] in fixed or node.input[0] not in makers:
            return 0
        return max((self._more_axes(name, node.input[0]) for name in node.input[1:] if name in fixed), default=0)

    def _more_axes(self, constant: str, read: str) -> int:
        """How many axes a constant of one element has more than a value."""
        shape = self._shape_of_constant(constant)
        if not shape or math.prod(1 if size is None else size for size in shape) != 1:
            return 0
        if len(shape) == 1 and not self._may_be_a_number(read):
            return 0
        kind = self._known(read)
        return max(len(shape) - len(kind.shape.dim), 0) if kind is not None else 0

    def _shape_of_constant(self, name: str) -> list[int | None] | None:
        """The sizes of a constant as far as they are known; None without a rank."""
        if name in self._walked.several:
            return None
        while (maker := self._walked.makers.get(name)) is not None and maker.op_type == "DequantizeLinear":
            name = maker.input[0]
        tensor = self._walked.fixed.get(name)
        if tensor is not None and tensor.data_type:
            return list(tensor.dims)
        kind = self._known(name)
        return None if kind is None else [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]

    def _may_be_a_number(self, name: str) -> bool:
        """Whether a value may have no axes, as far as the nodes tell."""
        waiting, seen = [name], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name in self._no_numbers or name in self._walked.fixed:
                continue
            seen.add(name)
            maker = self._walked.makers.get(name)
            if maker is None:
                continue
            if maker.op_type in _ENDING or canonical(maker.domain):
                return True
            if maker.op_type in _KEEPING or maker.op_type in ARITHMETIC:
                waiting += maker.input
        self._no_numbers |= seen
        return False

    def _known(self, name: str) -> TypeProto.Tensor | None:
        """The type of a value of known rank: as it is declared, or else inferred."""
        kind = self._declared.get(name)
        if kind is None or not kind.HasField("shape"):
            kind = self._walked.types.get(name)
        return kind if kind is not None and kind.HasField("shape") else None

    @functools.cached_property
    def _declared(self) -> Mapping[str, TypeProto.Tensor]:
        return tensor_types(self._walked.graphs)
