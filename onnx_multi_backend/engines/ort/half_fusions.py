# SPDX-License-Identifier: Apache-2.0
"""A fusion that ends ONNX Runtime's process (1.24 to 1.32, found by measuring).

Of a float16 MatMul with a constant, and a Transpose that moves the first axis to one of the last two places, the fusion makes one
node; building the session then ends the process at the level ORT_ENABLE_ALL, which is the default. PyTorch writes this where a batch
is not the first axis.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.models.graph_walk import all_nodes, all_tensors

_FUSION = "MatmulTransposeFusion"


def deadly_optimizers(model: ModelProto) -> list[str]:
    """The optimizers of ONNX Runtime that must not see a model."""
    half = TensorProto.FLOAT16
    if not any(node.op_type == "Transpose" and _moves_first_axis(node) for node in all_nodes(model)):
        return []
    if any(tensor.data_type == half for tensor in all_tensors(model)) or any(
        attribute.name == "to" and attribute.i == half
        for node in all_nodes(model)
        if node.op_type == "Cast"
        for attribute in node.attribute
    ):
        return [_FUSION]
    return []


def _moves_first_axis(node: NodeProto) -> bool:
    """Whether the first axis becomes the last or the one before it, and the others keep their order."""
    perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
    return len(perm) > 2 and 0 in perm[-2:] and sorted(perm) == [0, *(axis for axis in perm if axis)]
