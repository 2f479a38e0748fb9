# SPDX-License-Identifier: Apache-2.0
"""Around what ONNX Runtime (1.24 to 1.32) makes of an output of the model that is transposed and then quantized.

Its TransposeOptimizer moves QuantizeLinear and DequantizeLinear before the Transpose, and the output is read behind them: it is rounded to the
scale, and limited to its range. Between them the larger of a value and itself, which is that value, keeps the output as it is.
"""

from __future__ import annotations

from onnx import GraphProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

#: What Q/DQ nodes are moved over.
MOVING = frozenset({"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze", "MaxPool"})
_REASON = "ONNX Runtime would quantize the output too"


def outputs_unquantized(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these Transposes are kept apart from outputs; None where there are none."""
    if not contents.has({"QuantizeLinear"}) or not contents.has({"Transpose"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    found = [dict.fromkeys(_found(graph), 0) for graph in inner_first(flat.graph)]
    return inputs_apart(flat, found, f"{CAST}unquantized", "outputs_unquantized", "kept apart from an output", _REASON)


def _found(graph: GraphProto) -> list[int]:
    """The places of Transposes that read an output of their graph, and lead to a QuantizeLinear."""
    outputs = {value.name for value in graph.output}
    leads: set[str] = set()
    for node in reversed(graph.node):
        if canonical(node.domain):
            continue
        if node.op_type == "QuantizeLinear" or (node.op_type in MOVING and not leads.isdisjoint(node.output)):
            leads.add(node.input[0])
    return [
        place
        for place, node in enumerate(graph.node)
        if node.op_type == "Transpose"
        and not canonical(node.domain)
        and node.input[0] in outputs
        and node.output[0] in leads
    ]
