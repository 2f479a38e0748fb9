# SPDX-License-Identifier: Apache-2.0
"""Rule: recurrent layers over sequences of different lengths."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
_DEFAULTS = [b"Sigmoid", b"Tanh", b"Tanh"]
#: Closes a gate of LSTM or GRU, or opens it, whatever else goes into it. float16 holds it: where an engine computes in that, an infinity
#: makes NaN beside the zeros of all other steps.
_SURE = 6e4


def recurrent_lengths(site: Site) -> Iterator[ModelProto]:
    """Run over all steps, and take of each sequence what lies within its length; the reverse runs over reversed sequences.

    LSTM's last cell is kept by a feature that is 1 behind the end, where it closes the input gate and opens the
    forget gate; the other features are 0 there, since large ones would outweigh it. Source: LSTM's documentation.
    GRU's whole state is kept so, in both directions at once: the reverse starts behind the end with the initial state.
    """
    if not site.is_(*LAYERS) or not site.has_input(4) or site.attribute("layout", 0) or site.has_input(7):
        return
    directions = {"bidirectional": ("forward", "reverse")}.get(
        site.attribute("direction", "forward"), (site.attribute("direction", "forward"),)
    )
    both = len(directions) > 1
    if both and (site.attribute("activation_alpha") or site.attribute("activation_beta")):
        return
    if site.has_output(2) and (not _usual(site) or site.attribute("clip") or not _floats(site)):
        return
    if site.attribute("hidden_size") is None:
        return
    layer = _Layer(site)
    if site.op_type == "GRU" and not site.attribute("clip") and _usual(site) and _floats(site):
        yield layer.body.finish(*layer.gru(len(directions)))
        return
    made = [layer.run(i, direction == "reverse", both=both) for i, direction in enumerate(directions)]
    results = []
    for i, axis in zip(range(len(site.node.output)), (1, 0, 0), strict=False):
        parts = [direction[i] for direction in made]
        joined = layer.body("Concat", *parts, axis=axis) if both and parts[0] else parts[0]
        results.append(joined if site.has_output(i) else "")
    yield layer.body.finish(*results)


def _usual(site: Site) -> bool:
    """Whether an LSTM or GRU has the activations that it has by default, which close and open a gate."""
    usual = _DEFAULTS[: _ACTIVATIONS[site.op_type]]
    found = site.attribute("activations") or usual
    return list(found) == usual * (len(found) // len(usual))


def _floats(site: Site) -> bool:
    return site.elem_type(site.input(0)) == _T.FLOAT


class _Layer:
    """The body, with what all directions share."""

    def __init__(self, site: Site) -> None:
        self.site, self.body = site, Body(site, site.opsets if site.opset >= 13 else None)
        body, self.kind = self.body, site.elem_type(site.input(0))
        self.lengths = body.cast(site.input(4), _T.INT64)
        zero, self.one = (body.constant(n, _T.INT64) for n in (0, 1))
        steps = body("Gather", body("Shape", site.input(0)), zero, axis=0)
        self.place = body("Unsqueeze", body("Range", zero, steps, self.one), body.ints(1))
        self.within = body("Unsqueeze", body("Less", self.place, self.lengths), body.ints(2))  # [steps, batch, 1]
        self.empty = body("Less", self.lengths, self.one)
        self.none = body("Unsqueeze", self.empty, body.ints(0, 2))
        self.zero = body.constant(0, self.kind)

    @functools.cached_property
    def at_end(self) -> str:
        """Where each sequence ends: [steps, batch, 1]."""
        body = self.body
        return str(body("Unsqueeze", body("Equal", self.place, body("Sub", self.lengths, self.one)), body.ints(2)))

    @functools.cached_property
    def turned(self) -> str:
        """How many steps of each sequence are reversed, one at least."""
        return str(self.body("Where", self.empty, self.one, self.lengths))

    def gru(self, directions: int) -> list[str]:
        """All steps of a GRU, and the last of them: behind the end of a sequence the update gate keeps the state."""
        site, body = self.site, self.body
        inputs = [*site.node.input[:4], "", *filter(None, site.node.input[5:6])]
        inputs[0] = self._with_end(inputs[0])
        inputs[1] = self._with_gates(inputs[1], [_SURE, 0, 0], directions)  # update, reset, hidden
        while not inputs[-1]:
            inputs.pop()
        steps, last = body("GRU", *inputs, outputs=2, **site.attributes("layout"))
        return [
            body("Where", body("Unsqueeze", self.within, body.ints(1)), steps, self.zero),
            body("Where", self.none, self.zero, last),
        ]

    def run(self, index: int, backwards: bool, *, both: bool) -> list[str]:
        """One direction: all its steps [steps, 1, batch, hidden], the last of them, and LSTM's last cell."""
        site, body = self.site, self.body
        inputs = [self._part(i, index, both=both) if i else site.input(0) for i in range(min(7, len(site.node.input)))]
        inputs[4] = ""
        if backwards:
            inputs[0] = self._reversed(inputs[0])
        cell = site.has_output(2)
        if cell:
            inputs[0] = self._with_end(inputs[0])
            inputs[1] = self._with_gates(inputs[1], [-_SURE, 0, _SURE, 0])  # input, output, forget, cell
        names: dict[str, Any] = site.attributes("direction", "activations", "layout")
        if found := site.attribute("activations"):
            count = _ACTIVATIONS[site.op_type]
            names["activations"] = found[index * count : (index + 1) * count]
        while not inputs[-1]:
            inputs.pop()
        made = body(site.op_type, *inputs, outputs=3 if site.op_type == "LSTM" else 2, **names)
        steps = body("Squeeze", made[0], body.ints(1))
        last = body("ReduceSum", body("Where", self.at_end, steps, self.zero), body.ints(0), keepdims=1)
        if backwards:
            steps = self._reversed(steps)
        kept = body("Where", self.within, steps, self.zero)
        final = body("Where", self.none, self.zero, made[2]) if cell else ""
        return [body("Unsqueeze", kept, body.ints(1)), last, final]

    def _with_end(self, value: str) -> str:
        """The input with one more feature, which is 1 behind the end of a sequence; the others are 0 there."""
        body = self.body
        behind = body.cast(body("Not", self.within), self.kind)
        return str(body("Concat", body("Where", self.within, value, self.zero), behind, axis=2))

    def _with_gates(self, weights: str, gates: list[float], directions: int = 1) -> str:
        """The weights, with what that feature adds to each gate."""
        column = np.repeat(gates, self.site.attribute("hidden_size")).reshape(1, -1, 1)
        column = np.repeat(column, directions, axis=0)
        return str(self.body("Concat", weights, self.body.constant(column, self.kind), axis=2))

    def _reversed(self, value: str) -> str:
        return str(self.body("ReverseSequence", value, self.turned, time_axis=0, batch_axis=1))

    def _part(self, i: int, index: int, *, both: bool) -> str:
        """One direction's weights or state."""
        name, body = self.site.input(i), self.body
        if not name or not both or i == 4:
            return name
        return str(body("Slice", name, body.ints(index), body.ints(index + 1), body.ints(0)))
