# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of recurrent cells that are written out: a GRU or LSTM cell, of what is nearly one too.

It tells gates by their place in the Split, whatever is computed of them, does not look whether a state is the same wherever a GRU cell reads one,
and makes one sequence of cells with the same weights where the second has another cell state than that of the first. The larger of what is
split and itself, which is what is split, keeps the others as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, is_made_by, of_floats
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_ACTIVATIONS = frozenset({"HardSigmoid", "Relu", "Sigmoid", "Tanh"})
_PRODUCTS = frozenset({"Gemm", "MatMul"})
_GATES_OF_GRU, _GATES_OF_LSTM = 2, 4
_REASON = "OpenVINO would make a recurrent cell of it, which it is not"


class _States(NamedTuple):
    """What an LSTM cell reads and makes: hidden and cell state."""

    hidden: str
    cell: str
    new_hidden: str
    new_cell: str


def cells_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which the gates of what is nearly a cell are kept apart; None where there are none."""
    if not all(contents.has({operator}) for operator in ("Concat", "Mul", "Sigmoid", "Split")):
        return None
    if not contents.has(_PRODUCTS) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = zip(walked.views, walked.readers, strict=True)
    read = [
        {place: nodes[place].input[0] for place in _Search(walked, readers).places(nodes)} for nodes, readers in graphs
    ]
    found = of_floats(contents, flat, read)
    return inputs_apart(flat, found, f"{CAST}gates", "cells_apart", "kept apart from its gates", _REASON)


class _Search:
    """Looks for what is nearly a cell among the nodes of a graph."""

    def __init__(self, walked: Walked, readers: Mapping[str, Sequence[NodeProto]]) -> None:
        self._walked = walked
        self._readers = readers

    def places(self, nodes: Sequence[NodeView]) -> Iterator[int]:
        """The places of the Splits of such gates."""
        cells: dict[int, _States] = {}
        for place, node in enumerate(nodes):
            if node.operator != "Split":
                continue
            if len(node.output) == _GATES_OF_GRU and is_made_by(node.input[0], "Sigmoid", self._walked.makers):
                if not any(self._is_gru(node.input[0], *gates) for gates in (node.output, node.output[::-1])):
                    yield place
            elif len(node.output) == _GATES_OF_LSTM and (read := self._joined(node.input[0])):
                states = self._states(node.output, read[-1])
                if states is None:
                    yield place
                else:
                    cells[place] = states
        before = {states.new_hidden: states.new_cell for states in cells.values()}
        new_cells = set(before.values())
        for place, states in cells.items():
            known = before.get(states.hidden)
            if known != states.cell and (known is not None or states.cell in new_cells):
                yield place

    def _states(self, gates: Sequence[str], hidden: str) -> _States | None:
        """The states of the LSTM cell whose gates, in this order, are those of input, candidate, forget and output; None where it is another."""
        entering, candidate, forgetting, leaving = map(self._activated, gates)
        entered = self._of_both("Mul", entering, candidate)
        for kept in self._reading(forgetting, "Mul"):
            cell = next((name for name in kept.input if name != forgetting), "")
            new_cell = self._of_both("Add", entered, kept.output[0])
            shown = next((node.output[0] for node in self._reading(new_cell) if node.op_type in _ACTIVATIONS), "")
            if new_hidden := self._of_both("Mul", shown, leaving):
                return _States(hidden, cell, new_hidden, new_cell)
        return None

    def _is_gru(self, gated: str, reset: str, update: str) -> bool:
        """Whether these gates are those of a GRU cell."""
        read = self._joined(self._maker(gated).input[0])
        if len(read) != _GATES_OF_GRU:
            return False
        x, hidden = read
        again = self._of_both("Mul", reset, hidden)
        joined = next((node for node in self._reading(again, "Concat") if list(node.input) == [x, again]), None)
        rest = next((node for node in self._reading(update, "Sub") if self._is_one(node.input[0])), None)
        if joined is None or rest is None:
            return False
        candidates = (
            self._activated(product.output[0]) for product in self._reading(joined.output[0]) if _turns(product)
        )
        new = next((made for name in candidates if (made := self._of_both("Mul", rest.output[0], name))), "")
        return bool(self._of_both("Add", new, self._of_both("Mul", update, hidden)))

    def _joined(self, name: str) -> list[str]:
        """What is put together, multiplied by weights, and perhaps added to; empty where it is made otherwise."""
        maker = self._maker(name)
        if maker.op_type == "Add":
            made = (self._maker(read) for read in maker.input)
            maker = next((node for node in made if node.op_type in _PRODUCTS), NodeProto())
        if maker.op_type not in _PRODUCTS:
            return []
        joined = self._maker(maker.input[0])
        return list(joined.input) if joined.op_type == "Concat" else []

    def _activated(self, name: str) -> str:
        """What an activation makes of a value, or of its sum with something; empty where there is none."""
        sums = (node.output[0] for node in self._reading(name, "Add"))
        read = (node for value in (name, *sums) for node in self._reading(value))
        return next((node.output[0] for node in read if node.op_type in _ACTIVATIONS), "")

    def _of_both(self, operator: str, one: str, other: str) -> str:
        """What a node makes of two values; empty where there is none."""
        both = {one, other}
        return next((node.output[0] for node in self._reading(one, operator) if one and set(node.input) == both), "")

    def _reading(self, name: str, operator: str = "") -> list[NodeProto]:
        return [node for node in self._readers.get(name, ()) if not operator or node.op_type == operator]

    def _maker(self, name: str) -> NodeProto:
        return self._walked.makers.get(name, NodeProto())

    def _is_one(self, name: str) -> bool:
        held = self._walked.array(name)
        return held is not None and held.size == 1 and bool((held == 1).all())


def _turns(node: NodeProto) -> bool:
    """Whether a node is a product with weights that are turned, as those of a cell are."""
    return node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute)
