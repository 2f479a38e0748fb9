# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a reduction of three axes and arithmetic with a constant for each channel behind it.

It computes both in one kernel, and takes elements of the constant that belong to other channels. Seen of every reduction and global pool, over
the first or the last axis, also where activations and arithmetic with one number stand between; never of two, four or five axes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_FLOAT, ANY_NUMBER, FLOATS, inner_first, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of
from onnx_multi_backend.models.plausible import expands_too_far

_AXES = 3
#: The reductions are called so.
_REDUCING = ("Reduce", "Global")
_ARITHMETIC = frozenset({"Add", "Div", "Mul", "PRelu", "Sub"})
#: What may have a number for each channel in its other inputs, whatever they are.
_BY_CHANNEL = frozenset({"BatchNormalization", "DequantizeLinear", "QuantizeLinear"})
#: What may be computed in the same kernel.
_PASSING = frozenset(
    """Abs Cast Ceil Celu Clip Dropout Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity LeakyRelu Log Max Min Mish Neg Pow Reciprocal Relu
    Round Selu Sigmoid Sign Softplus Softsign Sqrt Swish Tanh ThresholdedRelu""".split()
)
_REASON = "OpenVINO would take elements of a constant behind it for those of other channels"


def channels_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such reductions are kept apart from what reads them; None where there are none."""
    reduces = any(isinstance(name, str) and name.startswith(_REDUCING) for name in contents.by_operator)
    if not reduces or not contents.has(_ARITHMETIC | _BY_CHANNEL) or expands_too_far(contents.model):
        return None
    flat = typed_of(contents.model).flat
    if (opset := opset_versions(flat).get("", 1)) < ANY_FLOAT:
        return None
    graphs = inner_first(flat.graph)
    constants: dict[str, TensorProto | None] = {
        name: tensor for graph in graphs for name, tensor in constants_of(graph).items()
    }
    for graph in reversed(graphs):  # the outer ones first
        _add_computed(graph, constants)
    looks = [_Graph(graph, constants, any_number=opset >= ANY_NUMBER) for graph in graphs]
    found = [dict.fromkeys(look.reductions(), (0,)) for look in looks]
    return outputs_apart(flat, found, f"{CAST}channels", "channels_apart", _REASON)


class _Graph:
    """Looks through one graph."""

    def __init__(self, graph: GraphProto, constants: Mapping[str, TensorProto | None], *, any_number: bool) -> None:
        self._nodes = graph.node[:]
        self._constants = constants
        self._any_number = any_number
        self._ranks = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in (*graph.input, *graph.value_info)
            if value.type.tensor_type.HasField("shape")
        }

    def reductions(self) -> list[int]:
        """The places of the reductions in question."""
        places = [place for place, node in enumerate(self._nodes) if self._may_reduce(node)]
        if not places:
            return []
        readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
        for node in self._nodes:
            for name in node.input:
                readers[name].append(node)
        return [place for place in places if self._meets_channels(self._nodes[place].output[0], readers)]

    def _may_reduce(self, node: NodeProto) -> bool:
        named = isinstance(node.op_type, str) and node.op_type.startswith(_REDUCING) and not canonical(node.domain)
        return named and len(node.input) > 0 and self._ranks.get(node.input[0], _AXES) == _AXES

    def _meets_channels(self, name: str, readers: Mapping[str, list[NodeProto]]) -> bool:
        waiting, seen = [name], {name}
        while waiting:
            read = waiting.pop()
            for node in readers.get(read, ()):
                if canonical(node.domain):
                    continue
                others = [other for other in node.input if other and other != read]
                operator = node.op_type
                if operator in _BY_CHANNEL | _ARITHMETIC and any(map(self._is_long, others)):
                    return True
                goes_on = operator in _PASSING or (operator in _ARITHMETIC and self._constants.keys() >= set(others))
                if goes_on and node.output[0] not in seen:
                    seen.add(node.output[0])
                    waiting.append(node.output[0])
        return False

    def _is_long(self, name: str) -> bool:
        """Whether it is a constant, and may have several elements."""
        if name not in self._constants:
            return False
        tensor = self._constants[name]
        if tensor is None:
            return self._any_number
        return math.prod(tensor.dims) > 1 and (self._any_number or tensor.data_type in FLOATS)


def _add_computed(graph: GraphProto, constants: dict[str, TensorProto | None]) -> None:
    """Add what a graph computes from constants alone: OpenVINO does so beforehand."""
    for node in graph.node:
        if node.input and all(name in constants for name in node.input if name):
            constants.update(dict.fromkeys(node.output))
