# SPDX-License-Identifier: Apache-2.0
"""Around what ONNX Runtime makes of a DequantizeLinear of anything but uint8 before what moves elements, as weights and inputs of int8 have it.

Its optimizers move the DequantizeLinear over a Transpose, Reshape and the like, and quantize in between. Without a zero point that is to uint8
(before 1.28, and before opset 21): negative numbers become 0, and those of wider types are limited. With one, from 1.27 and opset 21 on, the model is
refused for it; so it is before 1.32 with a scale for each element of an axis, behind a Transpose. Nothing is moved over the larger of a value and
itself, which is that value. What is quantized again anyway stays.
"""

from __future__ import annotations

import math

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import FLOATS, flat_for, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.ort.transposed_outputs import MOVING
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies, canonical, names_read

#: Since this opset QuantizeLinear names its type.
_OUTPUT_DTYPE = 21
_REASON = "ONNX Runtime would quantize it again, to another type"


def signed_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from what reads them; None where there are none."""
    if not contents.has({"DequantizeLinear"}) or not contents.has(MOVING):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    found = [_moved(graph) for graph in graphs]
    if not any(found):
        return None
    constants = walked.fixed
    has_type = opset_versions(flat).get("", 1) >= _OUTPUT_DTYPE
    named = has_type and applies({"onnxruntime": ">=1.27"})
    guessed = not has_type or applies({"onnxruntime": "<1.28"})
    turns_wrongly = applies({"onnxruntime": "<1.32"})
    stored = {t.name: TypeProto.Tensor(elem_type=t.data_type) for graph in graphs for t in graph.initializer}
    types = {**walked.types, **stored}

    def is_wrong(node: NodeProto, *, turned: bool) -> bool:
        if node.output[0] in types and types[node.output[0]].elem_type not in (0, *FLOATS):
            return False
        scale = constants.get(node.input[1])
        if turned and turns_wrongly and scale is not None and math.prod(scale.dims) > 1:
            return True
        signed = node.input[0] not in types or types[node.input[0]].elem_type != TensorProto.UINT8
        return signed and (named if any(node.input[2:]) else guessed)

    places = [
        {place: (0,) for place, turned in own.items() if is_wrong(graph.node[place], turned=turned)}
        for graph, own in zip(graphs, found, strict=True)
    ]
    return outputs_apart(flat, places, f"{CAST}signed", "signed_apart", _REASON)


def _moved(graph: GraphProto) -> dict[int, bool]:
    """The places of those that something reads which moves elements, and whether that is a Transpose."""
    kept = {value.name for value in graph.output}  # as numbers
    moved: dict[str, bool] = {}
    for node in reversed(graph.node):
        if node.op_type in MOVING and not canonical(node.domain):
            if not kept.isdisjoint(node.output):
                moved[node.input[0]] = moved.get(node.input[0], False) or node.op_type == "Transpose"
                kept.add(node.input[0])
        elif node.op_type != "QuantizeLinear":
            kept.update(node.input)
            kept.update(name for inner in bodies(node) for name in names_read(inner))
    return {
        place: moved[node.output[0]]
        for place, node in enumerate(graph.node)
        if node.op_type == "DequantizeLinear" and not canonical(node.domain) and node.output[0] in moved
    }
