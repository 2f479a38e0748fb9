# SPDX-License-Identifier: Apache-2.0
"""Rule: an LSTM whose forget gate is what the input gate leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

_WEIGHTS, _BIAS, _PEEPHOLES = (1, 2), 3, 7


def coupled_gates(site: Site) -> Iterator[ModelProto]:
    """Write ``input_forget=1`` with the input gate's weights, negated, as those of the forget gate: 1 - f(x) = f(-x) of a Sigmoid.

    Source: LSTM's documentation; ONNX Runtime computes the forget gate as 1 less the input gate.
    """
    if not site.is_("LSTM") or not site.attribute("input_forget", 0):
        return
    gates = [name.decode().lower() for name in site.attribute("activations", [])][::3]
    if not {"sigmoid"}.issuperset(gates) or site.has_input(_PEEPHOLES):
        return
    hidden = site.attribute("hidden_size", 0)
    if not hidden:
        return
    body = Body(site)
    inputs = list(site.node.input)
    for place, order in (*((place, "iofc") for place in _WEIGHTS), (_BIAS, "iofciofc")):
        if site.has_input(place):
            inputs[place] = _coupled(
                body, inputs[place], order, site.elem_type(site.input(0)), hidden, rows=place in _WEIGHTS
            )
    made = body("LSTM", *inputs, outputs=len(site.node.output), **site.attributes("input_forget"))
    yield body.finish(*made)


def _coupled(body: Body, name: str, order: str, kind: int, hidden: int, *, rows: bool) -> str:
    """Weights in which those of the forget gate are those of the input gate, negated; `rows`: a row of them each."""
    gates = [order.rindex("i", 0, place) if gate == "f" else place for place, gate in enumerate(order)]
    chosen = (np.array(gates, np.int64)[:, None] * hidden + np.arange(hidden)).ravel()
    signs = np.repeat([-1.0 if gate == "f" else 1.0 for gate in order], hidden)
    moved = body("Gather", name, body.constant(chosen), axis=1)
    return str(body("Mul", moved, body.constant(signs[:, None] if rows else signs, kind)))
