# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2025.4 makes of an RMSNormalization that is written out, of rows with fewer numbers than a register holds.

It recognizes ``x / sqrt(mean(x * x) + epsilon) * scale``, and its kernel ends the process where the last axis has fewer than 16 elements, or 8
without AVX-512. With the larger of a value and itself before the mean, which is that value, it is not recognized.
"""

from __future__ import annotations

from onnx import GraphProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

#: As many numbers as the widest register holds.
_LANES = 16
_REASON = "OpenVINO's kernel for an RMSNormalization of short rows ends the process"


def short_rows_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are not recognized; None where there are none."""
    written = contents.has({"ReduceMean"}) and contents.has({"Sqrt", "Pow"}) and contents.has({"Mul", "Pow"})
    if not written:
        return None
    if (flat := flat_for(contents)) is None:
        return None
    found = [_found(graph) for graph in inner_first(flat.graph)]
    if not any(found):
        return None
    types = walked_of(contents).types

    def is_short(name: str) -> bool:
        known = types.get(name)
        if known is None or not known.HasField("shape") or not known.shape.dim:
            return True
        last = known.shape.dim[-1]
        return not last.HasField("dim_value") or last.dim_value < _LANES

    places = [{place: 0 for place, name in own.items() if is_short(name)} for own in found]
    return inputs_apart(flat, places, f"{CAST}rows", "short_rows_apart", "kept from being recognized", _REASON)


def _found(graph: GraphProto) -> dict[int, str]:
    """The places of means of squares to which something is added before their root, with what is squared."""
    nodes = [node for node in graph.node if not canonical(node.domain)]
    squares = {
        node.output[0]: node.input[0]
        for node in nodes
        if node.op_type == "Pow" or (node.op_type == "Mul" and node.input[0] == node.input[1])
    }
    roots = {node.input[0] for node in nodes if node.op_type in ("Sqrt", "Pow")}
    added = {name for node in nodes if node.op_type == "Add" and node.output[0] in roots for name in node.input}
    return {
        place: squares[node.input[0]]
        for place, node in enumerate(graph.node)
        if node.op_type == "ReduceMean"
        and not canonical(node.domain)
        and node.input[0] in squares
        and node.output[0] in added
    }
