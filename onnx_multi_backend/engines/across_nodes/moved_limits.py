# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a QuantizeLinear behind what has a number for each element of an axis.

It moves constants of arithmetic into the limits of the quantization, and takes them for those of another axis, where

- there are two of several elements, along different axes or both of products;
- a Transpose stands between;
- scales for each element of an axis follow a reduction.

Nothing is moved over the larger of a value and itself, which is that value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from onnx import GraphProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.across_nodes.apart import ANY_FLOAT, fixed_values, inner_first, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

_SCALING = frozenset({"Div", "Mul"})
_ARITHMETIC = _SCALING | {"Add", "Sub"}
#: What may be between, with one input that is no constant.
_PASSING = frozenset({"Cast", "Clip", "Identity", "LeakyRelu", "Neg", "Relu", "Reshape", "Squeeze", "Unsqueeze"})
_REASON = "OpenVINO would take its constants, or those before it, for numbers of another axis"

#: The axis that a constant varies along, counted from the end; None for several axes.
_Axis = int | None


def limits_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from what is before them; None where there are none."""
    if not contents.has({"QuantizeLinear"}) or expands_too_far(contents.model):
        return None
    flat = inlined(contents.model)
    if opset_versions(flat).get("", 1) < ANY_FLOAT:
        return None
    graphs = inner_first(flat.graph)
    constants = fixed_values(graphs)
    found = [_Graph(graph, constants).found() for graph in graphs]
    change = "kept apart from the constants before it"
    return inputs_apart(flat, found, f"{CAST}limits", "limits_apart", change, _REASON)


class _Graph:
    """Looks through one graph."""

    def __init__(self, graph: GraphProto, constants: Mapping[str, TensorProto | None]) -> None:
        self._nodes = graph.node[:]
        self._constants = constants
        self._makers = {name: place for place, node in enumerate(self._nodes) for name in node.output if name}

    def found(self) -> dict[int, int]:
        """The place of the input that is to be kept apart, by that of the node."""
        return dict(
            place
            for i, node in enumerate(self._nodes)
            if node.op_type == "QuantizeLinear" and not canonical(node.domain)
            for place in self._mixed(i)
        )

    def _mixed(self, end: int) -> Iterator[tuple[int, int]]:
        """Where numbers of an axis may be taken for those of another on the way to a QuantizeLinear."""
        quantize = self._nodes[end]
        axes: list[tuple[_Axis, bool]] = []
        moved, name = False, quantize.input[0]
        last: tuple[int, int] | None = None
        while (place := self._makers.get(name)) is not None and name not in self._constants:
            maker = self._nodes[place]
            given = [i for i, read in enumerate(maker.input) if read and read not in self._constants]
            if canonical(maker.domain) or len(given) != 1:
                return
            if maker.op_type.startswith("Reduce"):
                if _is_long(self._constants.get(quantize.input[1])):
                    yield end, 0
                return
            if maker.op_type in _ARITHMETIC and len(maker.input) == 2:
                held = self._constants[maker.input[1 - given[0]]]
                if _is_long(held):
                    if moved:
                        yield end, 0
                        return
                    axes.append((_axis(held), maker.op_type in _SCALING))
                    if last is not None and _are_mixed(axes):
                        yield last
                        return
                    last = place, given[0]
            elif maker.op_type == "Transpose":
                moved = True
            elif maker.op_type not in _PASSING:
                return
            name = maker.input[given[0]]


def _is_long(tensor: TensorProto | None) -> bool:
    """Whether a constant has, or may have, several elements."""
    return tensor is None or math.prod(tensor.dims) > 1


def _axis(tensor: TensorProto | None) -> _Axis:
    places = [i for i, size in enumerate(reversed(tensor.dims)) if size > 1] if tensor is not None else []
    return places[0] if len(places) == 1 else None


def _are_mixed(axes: list[tuple[_Axis, bool]]) -> bool:
    """Whether there are two of products, or a product among those along different axes."""
    scaling = sum(scales for _, scales in axes)
    return scaling > 1 or (scaling == 1 and len({axis for axis, _ in axes}) > 1)
