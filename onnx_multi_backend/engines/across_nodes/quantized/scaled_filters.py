# SPDX-License-Identifier: Apache-2.0
"""Around the end of the process that OpenVINO's execution provider (2025.4) comes to over filters that are scaled in a run.

Where a Conv reads what was quantized, and its result is quantized, OpenVINO takes a product of its filters for their dequantization, whose scale it
needs to know (SIGSEGV while it compiles). The product is kept apart from the Conv.
"""

from __future__ import annotations

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_SCALING = frozenset({"Div", "Mul"})
_PAIR = ("DequantizeLinear", "QuantizeLinear")
_REASON = "the OpenVINO execution provider may end the process over filters that are scaled in a run"


def filters_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such products are kept apart from what reads them; None where there are none."""
    if not contents.has(_CONVOLUTIONS) or not contents.has(_SCALING) or not all(contents.has({o}) for o in _PAIR):
        return None
    walked = walked_of(contents)
    read = {
        name
        for graph in walked.graphs
        for node in graph.node
        if node.op_type in _CONVOLUTIONS
        for name in node.input[1:2]
    }
    found = [
        {
            place: (0,)
            for place, node in enumerate(graph.node)
            if node.op_type in _SCALING and node.output[0] in read and node.output[0] not in walked.fixed
        }
        for graph in walked.graphs
    ]
    if not any(found):
        return None
    return outputs_apart(walked.flat, found, f"{CAST}filters", "filters_apart", _REASON)
