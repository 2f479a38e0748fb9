# SPDX-License-Identifier: Apache-2.0
"""Optimizers that give convolutions and pools the padding or the factors around them.

Before 1.32 a Pad with zeros before MaxPool becomes the padding of MaxPool, where zeros do not count: the result is wrong where numbers are negative.
So it is before AveragePool with ceil_mode.

Two multiply the weights of a Conv by the factors of a BatchNormalization or Mul behind it, in their type (1.24 to 1.32): inf of float16 where both
are large, few digits where both are small.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.constant_chains import LIMITS, chain_of
from onnx_multi_backend.engines.ort.optimizers.passed import LEFT_OUT
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents

#: Make one convolution of one and the factors behind it.
_JOINING_FACTORS = {"BatchNormalization": "ConvBNFusion", "Mul": "ConvMulFusion"}


def of_pads(contents: Contents) -> list[str]:
    if not contents.has({"Pad"}) or not contents.has({"MaxPool", "AveragePool"}):
        return []
    padded: set[str] = set()
    for node in contents.nodes:
        passes = node.op_type in LEFT_OUT and node.input[0] in padded
        if node.op_type == "Pad" or passes:
            padded.update(node.output[:1])
    # What a local function passes on is not followed.
    pools = filter(_pools, contents.of("MaxPool", "AveragePool"))
    pooled = padded and any(contents.model.functions or node.input[0] in padded for node in pools)
    return ["Pad_Fusion"] if pooled and applies({"onnxruntime": "<1.32"}) else []


def _pools(node: NodeProto) -> bool:
    ceils = any(a.name == "ceil_mode" and a.i for a in node.attribute)
    return node.op_type == "MaxPool" or (node.op_type == "AveragePool" and ceils)


def of_factors(contents: Contents) -> list[str]:
    """They multiply the weights of a convolution by the factors behind it, in their type."""
    if not contents.has({"Conv"}) or not contents.has(_JOINING_FACTORS):
        return []
    convolutions = {node.output[0]: node for node in contents.of("Conv") if node.output and len(node.input) > 1}
    nodes = [node for node in contents.of(*_JOINING_FACTORS) if not convolutions.keys().isdisjoint(node.input)]
    met = (convolutions[name] for node in nodes for name in node.input if name in convolutions)
    constants = Facts(contents.model, contents).constants_of({name for node in (*nodes, *met) for name in node.input})
    return sorted({_JOINING_FACTORS[node.op_type] for node in nodes if _is_not_held(node, convolutions, constants)})


def _is_not_held(node: NodeProto, convolutions: Mapping[str, NodeProto], constants: Mapping[str, TensorProto]) -> bool:
    """Whether the type of weights does not hold what comes of them, and of the factors of a node behind their convolution."""
    data = next((place for place, name in enumerate(node.input) if name in convolutions), None)
    if data is None:
        return False
    before = convolutions[node.input[data]]
    others = [name for place, name in enumerate(node.input) if place != data]
    if not before.input[1] or not constants.keys() >= {name for name in (*before.input[1:], *others) if name}:
        return False
    limits = LIMITS.get(constants[before.input[1]].data_type)
    own, other = chain_of(node, data, constants), chain_of(before, 0, constants)
    return limits is not None and own.is_held(*limits) and not other.before(own).is_held(*limits)
