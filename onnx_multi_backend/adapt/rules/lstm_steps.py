# SPDX-License-Identifier: Apache-2.0
"""Rule: an LSTM whose gates look at the cell too, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.site import Body, Site

_SPLIT: Mapping[str, Any] = {"axis": 1, "num_outputs": 4}
_USUAL = ("Sigmoid", "Tanh", "Tanh")
#: Activations that are operators, and need no attribute.
_PLAIN = frozenset({"Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"})
_WEIGHTS, _BIAS, _LENGTHS, _STATES, _PEEPHOLES = (1, 2), 3, 4, (5, 6), 7


def lstm_steps(site: Site) -> Iterator[ModelProto]:
    """Write the layer as a Scan. What does not depend on the step before is multiplied at once.

    Behind the end of a sequence the states stay as they are; those of an empty one are 0, as ONNX Runtime has them.
    Source: LSTM's documentation.
    """
    unwritten = ("layout", "clip", "input_forget", "activation_alpha", "activation_beta")
    if not site.is_("LSTM") or not site.has_input(_PEEPHOLES):
        return
    if any(site.attribute(name) for name in unwritten):
        return
    directions = {"bidirectional": (0, 1), "reverse": (1,)}.get(site.attribute("direction", "forward"), (0,))
    found = [name.decode().capitalize() for name in site.attribute("activations", [])] or [*_USUAL] * len(directions)
    if len(found) != 3 * len(directions) or not _PLAIN.issuperset(found):
        return
    body = Body(site)
    made = [_direction(body, site, i, backwards, found[3 * i : 3 * i + 3]) for i, backwards in enumerate(directions)]
    results = []
    for place, axis in zip(range(len(site.node.output)), (1, 0, 0), strict=False):
        parts = [body("Unsqueeze", direction[place], body.ints(axis)) for direction in made]
        joined = body("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]
        results.append(joined if site.has_output(place) else "")
    yield body.finish(*results)


def _direction(body: Body, site: Site, index: int, backwards: int, activations: list[str]) -> tuple[str, str, str]:
    """All steps of a direction [steps, batch, hidden], the last of them, and the last cell."""
    x, kind = site.input(0), site.elem_type(site.input(0))

    def part(place: int) -> str:
        """What an input has for the direction."""
        return str(body("Gather", site.input(place), body.constant(np.array(index)), axis=0))

    weights, recurrent = (body("Transpose", part(place), perm=[1, 0]) for place in _WEIGHTS)
    gates = body("MatMul", x, weights)
    if site.has_input(_BIAS):
        for bias in body("Split", part(_BIAS), outputs=2, axis=0, num_outputs=2):
            gates = body("Add", gates, bias)
    hidden = body("Slice", body("Shape", site.input(2)), body.ints(2), body.ints(3))
    batch = body("Slice", body("Shape", x), body.ints(1), body.ints(2))
    none = body.zeros(body("Concat", batch, hidden, axis=0), kind)
    states = [part(place) if site.has_input(place) else none for place in _STATES]
    peepholes = body("Split", part(_PEEPHOLES), outputs=3, axis=0, num_outputs=3)
    within, empty = _within(body, site)
    way = [backwards] * 2
    last, cell, *_, steps = body(
        "Scan",
        *states,
        recurrent,
        *peepholes,
        gates,
        within,
        outputs=7,
        body=_step(kind, activations),
        num_scan_inputs=2,
        scan_input_directions=way,
        scan_output_directions=way[:1],
    )
    if empty:
        zero = body.constant(0, kind)
        last, cell = (body("Where", empty, zero, state) for state in (last, cell))
    return steps, last, cell


def _within(body: Body, site: Site) -> tuple[str, str]:
    """Which steps lie within their sequence [steps, batch, 1], and which sequences are empty [batch, 1]: none without lengths."""
    zero, one = (body.constant(n, TensorProto.INT64) for n in (0, 1))
    steps = body("Gather", body("Shape", site.input(0)), zero, axis=0)
    places = body("Unsqueeze", body("Range", zero, steps, one), body.ints(1, 2))
    if not site.has_input(_LENGTHS):
        return str(body("Less", places, steps)), ""
    lengths = body("Unsqueeze", body.cast(site.input(_LENGTHS), TensorProto.INT64), body.ints(1))
    return str(body("Less", places, lengths)), str(body("Less", lengths, one))


def _step(kind: int, activations: list[str]) -> GraphProto:
    """One step. The gates are in the order input, output, forget, cell; the peepholes in that of the first three.

    The weights are states that each step passes on: OpenVINO has no Scan that reads values from outside.
    """
    f, g, h = activations
    weights = ["recurrent", "look_input", "look_output", "look_forget"]
    nodes = [
        ("MatMul", ["before", "recurrent"], ["again"]),
        ("Add", ["given", "again"], ["sums"]),
        ("Split", ["sums"], ["i0", "o0", "f0", "g0"]),
        ("Mul", ["look_input", "cell"], ["i1"]),
        ("Add", ["i0", "i1"], ["i2"]),
        (f, ["i2"], ["i"]),
        ("Mul", ["look_forget", "cell"], ["f1"]),
        ("Add", ["f0", "f1"], ["f2"]),
        (f, ["f2"], ["f"]),
        (g, ["g0"], ["g"]),
        ("Mul", ["f", "cell"], ["kept"]),
        ("Mul", ["i", "g"], ["new"]),
        ("Add", ["kept", "new"], ["made"]),
        ("Mul", ["look_output", "made"], ["o1"]),
        ("Add", ["o0", "o1"], ["o2"]),
        (f, ["o2"], ["o"]),
        (h, ["made"], ["shown"]),
        ("Mul", ["o", "shown"], ["result"]),
        ("Where", ["within", "result", "before"], ["after"]),
        ("Where", ["within", "made", "cell"], ["now"]),
        ("Where", ["within", "result", "zero"], ["row"]),
        *(("Identity", [name], [f"{name}/on"]) for name in weights),
    ]
    made = [helper.make_node(op, read, written, **_SPLIT if op == "Split" else {}) for op, read, written in nodes]
    inputs, outputs = (
        [helper.make_tensor_value_info(n, kind, [None] * (1 if n.startswith("look") else 2)) for n in names]
        for names in (
            ("before", "cell", *weights, "given"),
            ("after", "now", *(f"{name}/on" for name in weights), "row"),
        )
    )
    inputs.append(helper.make_tensor_value_info("within", TensorProto.BOOL, [None, None]))
    zero = helper.make_tensor("zero", kind, [], [0.0])
    return helper.make_graph(made, "step", inputs, outputs, [zero])
