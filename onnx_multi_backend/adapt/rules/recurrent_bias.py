# SPDX-License-Identifier: Apache-2.0
"""Rule: recurrent layers whose weights are known before anything runs, and whose bias is not."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.site import Body, Site


def recurrent_bias(site: Site) -> Iterator[ModelProto]:
    """Choose between the weights and the same weights by a number of the bias, so that they are known only when the bias is."""
    if not site.is_(*LAYERS) or not site.has_input(3) or site.is_known(site.input(3)) or GUARDED in site.node.name:
        return
    body = Body(site, site.opsets if site.opset >= 14 else None)
    inputs = list(site.node.input)
    either = body("IsNaN", body("Slice", inputs[3], body.ints(0), body.ints(1), body.ints(1)))  # [directions, 1]
    inputs[1] = body("Where", body("Unsqueeze", either, body.ints(2)), inputs[1], inputs[1])
    made = body(site.op_type, *inputs, outputs=len(site.node.output), name=GUARDED, **site.attributes())
    yield body.finish(*made)
