# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of constants that it joins: factors and terms in a row, and those of weights before or behind them.

It multiplies or adds them up beforehand, in their type: of two factors of 512 in float16 comes inf, of two of 0.001 a subnormal number of four bits.
What is too large or too small that way is kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx import TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.constant_chains import LIMITS, SHIFTING, Chain, chain_of
from onnx_multi_backend.models.contents import Contents

_SCALING = frozenset({"BatchNormalization", "Div", "Mul"})
_PASSING = frozenset({"Dropout", "Identity", "Neg"})
#: Of these a factor of the data is joined to the weights, too.
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_PRODUCTS = frozenset({*_CONVOLUTIONS, "Gemm", "MatMul"})
_JOINING = _SCALING | SHIFTING | _PRODUCTS
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
    found = [dict(_Chains(constants).parted(nodes)) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}joined", "constants_apart", _CHANGE, _REASON)


class _Chains:
    """Follows constants through a graph. What a node does to its data is looked at where another one before or behind it has a constant too."""

    def __init__(self, constants: Mapping[str, TensorProto]) -> None:
        self._constants = constants
        self._chains: dict[str, Chain] = {}
        self._single: dict[str, tuple[NodeView, int]] = {}

    def parted(self, nodes: Sequence[NodeView]) -> Iterator[tuple[int, int]]:
        """The places of the nodes whose constant is not to be joined to those before it, and of their data among their inputs."""
        for place, node in enumerate(nodes):
            if not node.operator or not node.input or not node.output:
                continue
            if node.operator in _PASSING:
                self._pass(node)
                continue
            if (data := self._place_of_data(node)) is None:
                continue
            before = None if node.operator in _PRODUCTS - _CONVOLUTIONS else self._before(node.input[data])
            if before is None:
                self._single[node.output[0]] = node, data
                continue
            own = chain_of(node.proto, data, self._constants)
            kind = next(self._constants[name].data_type for name in node.input if name in self._constants)
            both = before.before(own)
            joins = kind not in LIMITS or both.is_held(*LIMITS[kind])
            self._chains[node.output[0]] = both if joins else own
            if not joins and own.is_held(*LIMITS[kind]) and before.is_held(*LIMITS[kind]):
                yield place, data

    def _pass(self, node: NodeView) -> None:
        read, made = node.input[0], node.output[0]
        if read in self._chains:
            self._chains[made] = self._chains[read]
        elif read in self._single:
            self._single[made] = self._single[read]

    def _before(self, name: str) -> Chain | None:
        """What is done to a value before."""
        if name in self._single and name not in self._chains:
            node, data = self._single[name]
            self._chains[name] = chain_of(node.proto, data, self._constants)
        return self._chains.get(name)

    def _place_of_data(self, node: NodeView) -> int | None:
        """The place of the only input of a node that is not constant; None where it has another form, or joins nothing."""
        if node.operator not in _JOINING or len(list(filter(None, node.input))) < 2:
            return None
        computed = [place for place, name in enumerate(node.input) if name and name not in self._constants]
        if len(computed) != 1 or (node.operator in ("BatchNormalization", "Div") and computed != [0]):
            return None
        return computed[0]
