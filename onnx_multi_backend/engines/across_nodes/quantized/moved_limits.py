# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of constants with a number for each element of an axis, in a model with a QuantizeLinear anywhere.

Its low-precision transformations move them into the limits of a quantization, into biases and behind reductions, and take them for those of
another axis, where

- a QuantizeLinear follows two of products, or a Transpose behind one;
- it follows a factor for each channel, of open shapes or with a pool or Pad between, or, of open shapes, one that is subtracted;
- it follows a summand for each channel, and how many channels there are only a run tells;
- the QuantizeLinear itself has several scales, and follows a reduction;
- what is added lies along another axis than the factor before it;
- a reduction follows, or an AveragePool that counts its padding.

Nothing is moved over the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, has_fixed_inputs, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_SCALING = frozenset({"Div", "Mul"})
_ADDING = frozenset({"Add", "Sub"})
_ARITHMETIC = _SCALING | _ADDING
#: Are written with a factor and a summand for each channel.
_NORMALIZING = frozenset({"BatchNormalization", "GroupNormalization", "InstanceNormalization"})
_LAYER = "LayerNormalization"
#: The axis of channels.
_CHANNEL = 1
_POOLING = frozenset({"AveragePool", "MaxPool", "Pad"})
#: What may be between, with one input that is no constant.
_PASSING = _POOLING | frozenset(
    {"Cast", "Clip", "Identity", "LeakyRelu", "Neg", "Relu", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
_REASON = "OpenVINO would take the constants before it for numbers of another axis"


def limits_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which what may get these constants is kept apart from them; None where there is none."""
    if not contents.has({"QuantizeLinear"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked, is_open = walked_of(contents), not has_fixed_inputs(flat)
    found = [_Graph(graph, walked.fixed, lambda: walked.types, is_open=is_open).found() for graph in walked.graphs]
    change = "kept apart from the constants before it"
    return inputs_apart(flat, found, f"{CAST}limits", "limits_apart", change, _REASON)


class _Step(NamedTuple):
    """A node before another one.

    Attributes
    ----------
    operator : str
    at : (int, int)
        Its place, and that of its input that is no constant.
    axes : frozenset of int
        Those that its constant varies along, counted from the end; empty for none, and for one number. None is not known.
    """

    operator: str
    at: tuple[int, int]
    axes: frozenset[int | None] = frozenset()


class _Graph:
    """Looks through one graph."""

    def __init__(
        self,
        graph: GraphProto,
        constants: Mapping[str, TensorProto | None],
        types: Callable[[], Mapping[str, TypeProto.Tensor]],
        *,
        is_open: bool,
    ) -> None:
        self._nodes = graph.node[:]
        self._types = types
        self._constants = constants
        self._makers = {name: place for place, node in enumerate(self._nodes) for name in node.output if name}
        self._open = is_open

    def found(self) -> dict[int, int]:
        """The place of the input that is to be kept apart, by that of the node."""
        places: dict[int, int] = {}
        for place, node in enumerate(self._nodes):
            if canonical(node.domain) or not node.input:
                continue
            if (node.op_type == "QuantizeLinear" and self._limits(node)) or (
                (_reduces(node.op_type) or _counts_padding(node)) and self._is_behind_constants(node.input[0])
            ):
                places[place] = 0
            elif node.op_type in _ADDING and (at := self._is_behind_a_factor(node)) is not None:
                places[place] = at
        return places

    def _before(self, name: str) -> Iterator[_Step]:
        """The nodes before a value, as far as constants may be moved over them; the last is none of these."""
        while (place := self._makers.get(name)) is not None and name not in self._constants:
            node = self._nodes[place]
            if canonical(node.domain):
                return
            given = [i for i, read in enumerate(node.input) if read and read not in self._constants]
            along = len(given) == 1 and node.op_type in _ARITHMETIC and len(node.input) == 2
            axes = self._axes(node.input[1 - given[0]]) if along else frozenset()
            if node.op_type == _LAYER and node.input[1] in self._constants:
                axes = self._axes(node.input[1])
            yield _Step(node.op_type, (place, given[0] if given else 0), axes)
            if len(given) != 1 or not (along or node.op_type in _PASSING):
                return
            name = node.input[given[0]]

    def _axes(self, name: str) -> frozenset[int | None]:
        tensor = self._constants[name]
        if tensor is None:
            return frozenset({None})
        return frozenset(i for i, size in enumerate(reversed(tensor.dims)) if size > 1)

    def _limits(self, quantize: NodeProto) -> bool:
        """Whether constants on the way to a QuantizeLinear may become limits of another axis."""
        several = bool(self._axes(quantize.input[1])) if quantize.input[1] in self._constants else True
        factors, moved, split = 0, False, self._open
        for step in self._before(quantize.input[0]):
            if _reduces(step.operator):
                return several
            moved = moved or step.operator == "Transpose"
            split = split or step.operator in _POOLING
            factors += bool(step.axes) and step.operator in _SCALING
            if step.axes and (moved or factors > 1 or (step.operator == "Sub" and self._open)):
                return True
            if self._scales_channels(step, split=split) or self._adds_to_channels(step):
                return True
        return False

    def _adds_to_channels(self, step: _Step) -> bool:
        """Whether a node may add a number of its own to each of as many channels as only a run tells."""
        if step.operator != "Add" or not step.axes or not self._open:
            return False
        known = self._types().get(self._nodes[step.at[0]].input[step.at[1]])
        if known is None or not known.HasField("shape"):
            return True
        sizes = known.shape.dim
        if len(sizes) < _CHANNEL + 1 or step.axes.isdisjoint({len(sizes) - _CHANNEL - 1, None}):
            return False
        return not sizes[_CHANNEL].HasField("dim_value")

    def _scales_channels(self, step: _Step, *, split: bool) -> bool:
        """Whether a node may multiply each channel by a number of its own, and that is moved: in two axes always, else where it is `split`."""
        if step.operator in _NORMALIZING:
            return split
        if not step.axes or step.operator not in _SCALING | {_LAYER}:
            return False
        known = self._types().get(self._nodes[step.at[0]].output[0])
        if known is None or not known.HasField("shape"):
            return True
        rank = len(known.shape.dim)
        return (split or rank == 2) and not step.axes.isdisjoint({rank - 2, None})

    def _is_behind_constants(self, name: str) -> bool:
        """Whether a reduction follows a constant for each element of an axis."""
        return any(step.axes or step.operator in _NORMALIZING for step in self._before(name))

    def _is_behind_a_factor(self, node: NodeProto) -> int | None:
        """The place of the input of an addition that a factor along another axis is before; None for any other."""
        given = [i for i, read in enumerate(node.input) if read not in self._constants]
        if len(given) != 1 or len(node.input) != 2 or not (axes := self._axes(node.input[1 - given[0]])):
            return None
        factors = (step for step in self._before(node.input[given[0]]) if step.operator in _SCALING)
        mixed = any(step.axes and (step.axes != axes or None in axes) for step in factors)
        return given[0] if mixed else None


def _reduces(operator: str | bytes) -> bool:
    """Bytes are a name that is not UTF-8."""
    return isinstance(operator, str) and operator.startswith(("Reduce", "GlobalAverage"))


def _counts_padding(node: NodeProto) -> bool:
    return node.op_type == "AveragePool" and any(a.name == "count_include_pad" and a.i for a in node.attribute)
