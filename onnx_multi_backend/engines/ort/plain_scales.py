# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points as the fusions of ONNX Runtime expect them, where it refuses a model for another form.

One scale of shape [1] makes a QLinearAveragePool that its own inference refuses (1.24 to 1.32), and before 1.32 a QLinearAdd or QLinearMul; it
becomes a scalar. A QuantizeLinear without a zero point behind a Relu loses what it reads before 1.32; it gets one, which is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, constants_of
from onnx_multi_backend.models.tensors import is_whole

_QUANTIZING = frozenset({"DequantizeLinear", "QuantizeLinear"})
_POOL = "AveragePool"
_ARITHMETIC = frozenset({"Add", "Mul"})
_PASS = "plain_scales"
_SHAPED = "ONNX Runtime refuses the quantized operator that it makes of this"
_UNSHIFTED = "ONNX Runtime would lose what is quantized behind a Relu"


def plain_scales(contents: Contents) -> Rewritten | None:
    """A copy of the model with scalars for scales of shape [1], and with zero points behind Relu; None where there are none."""
    if not contents.has({"QuantizeLinear"}):
        return None
    before = applies({"onnxruntime": "<1.32"})
    shaped = contents.has({_POOL, *(_ARITHMETIC if before else ())})
    unshifted = before and contents.has({"Relu"})
    if not (shaped or unshifted):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    constants = {name: tensor for graph in graphs for name, tensor in constants_of(graph).items() if is_whole(tensor)}
    if not any(_Graph(graph, constants, shaped=shaped, unshifted=unshifted).is_meant for graph in graphs):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    taken, changes = names_taken(copy), list[Adaptation]()
    for graph in inner_first(copy.graph):
        _Graph(graph, constants, shaped=shaped, unshifted=unshifted).write(taken, changes)
    return Rewritten(copy, tuple(changes))


class _Graph:
    """Looks through one graph, whose nodes may read the constants of those around it."""

    def __init__(
        self, graph: GraphProto, constants: Mapping[str, TensorProto], *, shaped: bool, unshifted: bool
    ) -> None:
        self._graph = graph
        given = {value.name for value in graph.input}
        self._constants = {name: tensor for name, tensor in constants.items() if name not in given}
        quantizing = [n for n in graph.node if n.op_type in _QUANTIZING and not canonical(n.domain)]
        self._shaped = [(n, places) for n in quantizing if (places := self._lists(n))] if shaped else []
        relus = {n.output[0] for n in graph.node if n.op_type == "Relu" and not canonical(n.domain)}
        self._unshifted = [
            n
            for n in quantizing
            if unshifted and n.input[0] in relus and n.input[1] in self._constants and _is_plain(n)
        ]

    @property
    def is_meant(self) -> bool:
        return bool(self._shaped or self._unshifted)

    def _lists(self, node: NodeProto) -> list[int]:
        """The places of a scale and a zero point of shape [1]; none unless both are constants."""
        held = [(i, self._constants.get(name)) for i, name in enumerate(node.input) if i and name]
        if any(tensor is None or list(tensor.dims) != [1] for _, tensor in held):
            return []
        return [i for i, _ in held]

    def write(self, taken: set[str], changes: list[Adaptation]) -> None:
        """Write them in their other form."""
        scalars: dict[str, str] = {}
        for node, places in self._shaped:
            for i in places:
                if (name := node.input[i]) not in scalars:
                    scalars[name] = unused(f"{name}{CAST}scalar", taken)
                    scalar = self._graph.initializer.add()
                    scalar.CopyFrom(self._constants[name])
                    scalar.ClearField("dims")
                    scalar.name = scalars[name]
                node.input[i] = scalars[name]
            changes.append(Adaptation(_PASS, _where(node), "its scale of shape [1] is a scalar", _SHAPED))
        for node in self._unshifted:
            scale = self._constants.get(node.input[1])  # one that was made a scalar is none of these
            zero = self._graph.initializer.add(data_type=TensorProto.UINT8, dims=[] if scale is None else scale.dims)
            zero.name = unused(f"{node.output[0]}{CAST}zero", taken)
            zero.raw_data = bytes(math.prod(zero.dims))
            del node.input[2:]
            node.input.append(zero.name)
            changes.append(Adaptation(_PASS, _where(node), "its zero point is written out", _UNSHIFTED))


def _is_plain(node: NodeProto) -> bool:
    """Whether it makes uint8 since nothing says otherwise."""
    named = any(a.name == "output_dtype" and a.i for a in node.attribute)
    return node.op_type == "QuantizeLinear" and not any(node.input[2:]) and not named


def _where(node: NodeProto) -> str:
    return f"{node.op_type} {node.name or node.output[0]!r}"
