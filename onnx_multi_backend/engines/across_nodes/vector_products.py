# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a product with a constant vector that is multiplied or divided by a constant.

The constant is multiplied into the vector beforehand, with an axis more, as into the columns of a matrix: the result has an axis too many, or, of
fixed sizes, the model is refused. Nothing is moved over the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import GraphProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import ANY_FLOAT, ANY_NUMBER, FLOATS, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_SCALING = frozenset({"Div", "Mul"})
_REASON = "OpenVINO would multiply a constant behind it into its vector, as into a matrix"


def vector_products(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such products are kept apart from what scales them; None where there are none."""
    if not contents.has({"MatMul"}) or not contents.has(_SCALING):
        return None
    walked = walked_of(contents)
    if (opset := opset_versions(walked.flat).get("", 1)) < ANY_FLOAT:
        return None
    vectors = walked.several | {  # another tensor may have the name
        name
        for name, tensor in walked.fixed.items()
        if tensor is not None and len(tensor.dims) == 1 and (opset >= ANY_NUMBER or tensor.data_type in FLOATS)
    }
    found = [dict.fromkeys(_scaled(graph, vectors), (0,)) for graph in walked.graphs]
    return outputs_apart(walked.flat, found, f"{CAST}product", "vector_products", _REASON)


def _scaled(graph: GraphProto, vectors: Collection[str]) -> list[int]:
    """The places of products with one of these vectors that are multiplied or divided."""
    products = [
        place
        for place, node in enumerate(graph.node)
        if node.op_type == "MatMul" and not canonical(node.domain) and node.input[1] in vectors
    ]
    if not products:
        return []
    read = {
        name for node in graph.node if node.op_type in _SCALING and not canonical(node.domain) for name in node.input
    }
    return [place for place in products if graph.node[place].output[0] in read]
