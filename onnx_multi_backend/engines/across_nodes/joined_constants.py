# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of constants that it joins: factors and terms in a row, and those of weights before or behind them.

It multiplies or adds them up beforehand, in their type: of two factors of 512 in float16 comes inf, of two of 0.001 a subnormal number of four bits.
What is too large or too small that way is kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import walked_of
from onnx_multi_backend.engines.constant_chains import LIMITS, SHIFTING, Chain, chain_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_SCALING = frozenset({"BatchNormalization", "Div", "Mul"})
_PASSING = frozenset({"Dropout", "Identity", "Neg"})
#: Of these a factor of the data is joined to the weights, too.
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_PRODUCTS = frozenset({*_CONVOLUTIONS, "Gemm", "MatMul"})
_CHANGE = "kept apart from the constant before it"
_REASON = "OpenVINO would join both constants to one that their type does not hold"


def constants_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such constants are kept apart; None where there are none."""
    if not contents.has(_SCALING | SHIFTING):
        return None
    walked = walked_of(contents)
    constants = {name: t for name, t in walked.fixed.items() if t is not None and name not in walked.several}
    if not any(tensor.data_type in LIMITS for tensor in constants.values()) or (flat := flat_for(contents)) is None:
        return None
    found = [dict(_found(graph, constants)) for graph in walked.graphs]
    return inputs_apart(flat, found, f"{CAST}joined", "constants_apart", _CHANGE, _REASON)


def _found(graph: GraphProto, constants: Mapping[str, TensorProto]) -> Iterator[tuple[int, int]]:
    """The places of the nodes whose constant is not to be joined to those before it, and of their data among their inputs."""
    chains: dict[str, Chain] = {}
    for place, node in enumerate(graph.node):
        if canonical(node.domain) or not node.input or not node.output:
            continue
        if node.op_type in _PASSING:
            if node.input[0] in chains:
                chains[node.output[0]] = chains[node.input[0]]
            continue
        if (data := _place_of_data(node, constants)) is None:
            continue
        own, before = chain_of(node, data, constants), chains.get(node.input[data])
        chains[node.output[0]] = own
        if before is None or node.op_type in _PRODUCTS - _CONVOLUTIONS:
            continue
        kind = next(constants[name].data_type for name in node.input if name in constants)
        both = before.before(own)
        if kind not in LIMITS or both.is_held(*LIMITS[kind]):
            chains[node.output[0]] = both
        elif own.is_held(*LIMITS[kind]) and before.is_held(*LIMITS[kind]):
            yield place, data


def _place_of_data(node: NodeProto, constants: Mapping[str, TensorProto]) -> int | None:
    """The place of the only input of a node that is not constant; None where it has another form, or joins nothing."""
    if node.op_type not in _SCALING | SHIFTING | _PRODUCTS:
        return None
    computed = [place for place, name in enumerate(node.input) if name and name not in constants]
    if len(computed) != 1 or len(node.input) < 2 or (node.op_type in ("BatchNormalization", "Div") and computed != [0]):
        return None
    return computed[0]
