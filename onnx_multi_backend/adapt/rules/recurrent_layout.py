# SPDX-License-Identifier: Apache-2.0
"""Rule: recurrent layers whose batch comes first."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.site import Body, Site

_STATES = (5, 6)  # initial_h, and LSTM's initial_c
_SWAP = [1, 0, 2]


def recurrent_layout(site: Site) -> Iterator[ModelProto]:
    """Write ``layout=1`` as ``layout=0`` between transposes. Source: the shapes in RNN's, GRU's, LSTM's documentation."""
    if not site.is_(*LAYERS) or not site.attribute("layout", 0):
        return
    body = Body(site)
    inputs = list(site.node.input)
    for i in (0, *_STATES):
        if site.has_input(i):
            inputs[i] = body("Transpose", inputs[i], perm=_SWAP)
    made = body(site.op_type, *inputs, outputs=3 if site.op_type == "LSTM" else 2, **site.attributes("layout"))
    whole, *states = made
    yield body.finish(
        body("Transpose", whole, perm=[2, 0, 1, 3]), *(body("Transpose", state, perm=_SWAP) for state in states)
    )
