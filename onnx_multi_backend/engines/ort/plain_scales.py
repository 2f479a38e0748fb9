# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points as the fusions of ONNX Runtime expect them, where it refuses a model for another form.

One scale of shape [1] makes a QLinearAveragePool that its own inference refuses (1.24 to 1.32), and before 1.32 a QLinearAdd or QLinearMul; it becomes a
scalar. A QuantizeLinear without a zero point behind a Relu loses what it reads before 1.32; it gets one, which is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inner_first, makers_of, names_taken, unused
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
    before = applies({"onnxruntime": "<1.32"})
    shaped_too = contents.has({_POOL, *(_ARITHMETIC if before else ())})
    unshifted = before and contents.has({"Relu"})
    if not contents.has({"QuantizeLinear"}) or not (shaped_too or unshifted):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    taken, changes = names_taken(copy), list[Adaptation]()
    for graph in inner_first(copy.graph):
        _write(graph, shaped_too, unshifted, taken, changes)
    return Rewritten(copy, tuple(changes)) if changes else None


def _write(graph: GraphProto, shaped_too: bool, unshifted: bool, taken: set[str], changes: list[Adaptation]) -> None:
    makers = makers_of([graph])
    if unshifted:
        _shift(graph, makers, taken, changes)
    constants = {name: tensor for name, tensor in constants_of(graph).items() if is_whole(tensor)}
    scalars: dict[str, str] = {}
    for node in graph.node if shaped_too else ():
        if node.op_type not in _QUANTIZING or canonical(node.domain):
            continue
        shaped = [i for i, name in enumerate(node.input) if i and name in constants and constants[name].dims == [1]]
        if not shaped:
            continue
        for i in shaped:
            if (name := node.input[i]) not in scalars:
                scalars[name] = unused(f"{name}{CAST}scalar", taken)
                scalar = graph.initializer.add()
                scalar.CopyFrom(constants[name])
                scalar.ClearField("dims")
                scalar.name = scalars[name]
            node.input[i] = scalars[name]
        changes.append(Adaptation(_PASS, _where(node), "its scale of shape [1] is a scalar", _SHAPED))


def _shift(graph: GraphProto, makers: Mapping[str, NodeProto], taken: set[str], changes: list[Adaptation]) -> None:
    """Write zero points out behind Relu."""
    constants = constants_of(graph)
    for node in graph.node:
        maker = makers.get(node.input[0]) if _quantizes_plainly(node) else None
        if maker is None or maker.op_type != "Relu" or node.input[1] not in constants:
            continue
        dims = constants[node.input[1]].dims
        zero = graph.initializer.add(data_type=TensorProto.UINT8, dims=dims)
        zero.name = unused(f"{node.output[0]}{CAST}zero", taken)
        zero.raw_data = bytes(math.prod(dims))
        del node.input[2:]
        node.input.append(zero.name)
        changes.append(Adaptation(_PASS, _where(node), "its zero point is written out", _UNSHIFTED))


def _quantizes_plainly(node: NodeProto) -> bool:
    """Whether it makes uint8 since nothing says otherwise."""
    named = any(a.name == "output_dtype" and a.i for a in node.attribute)
    return node.op_type == "QuantizeLinear" and not canonical(node.domain) and not any(node.input[2:]) and not named


def _where(node: NodeProto) -> str:
    return f"{node.op_type} {node.name or node.output[0]!r}"
