# SPDX-License-Identifier: Apache-2.0
"""Optimizers of ONNX Runtime that must not see a model (found by measuring).

Before 1.32 a Pad with zeros before MaxPool becomes the padding of MaxPool, where zeros do not count: the result is wrong where numbers are negative.
So it is before AveragePool with ceil_mode.

A fusion ends the process of 1.24 to 1.32. Of a float16 MatMul with a constant, and a Transpose that moves the first axis to one of the last two places, the fusion makes one
node; building the session then ends the process at the level ORT_ENABLE_ALL, which is the default. PyTorch writes this where a batch
is not the first axis.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.graph_walk import all_nodes, all_tensors


def harmful_optimizers(model: ModelProto) -> list[str]:
    """The optimizers of ONNX Runtime that must not see a model."""
    return [*_of_pads(model), *_of_halves(model)]


def _of_pads(model: ModelProto) -> list[str]:
    padded: set[str] = set()
    for node in all_nodes(model):
        passes = node.op_type in ("Cast", "Identity") and node.input[0] in padded
        if node.op_type == "Pad" or passes:
            padded.update(node.output[:1])
    # What a local function passes on is not followed.
    pooled = padded and any(_pools(n) and (model.functions or n.input[0] in padded) for n in all_nodes(model))
    return ["Pad_Fusion"] if pooled and applies({"onnxruntime": "<1.32"}) else []


def _pools(node: NodeProto) -> bool:
    ceils = any(a.name == "ceil_mode" and a.i for a in node.attribute)
    return node.op_type == "MaxPool" or (node.op_type == "AveragePool" and ceils)


def _of_halves(model: ModelProto) -> list[str]:
    half = TensorProto.FLOAT16
    if not any(node.op_type == "Transpose" and _moves_first_axis(node) for node in all_nodes(model)):
        return []
    if any(tensor.data_type == half for tensor in all_tensors(model)) or any(
        attribute.name == "to" and attribute.i == half
        for node in all_nodes(model)
        if node.op_type == "Cast"
        for attribute in node.attribute
    ):
        return ["MatmulTransposeFusion"]
    return []


def _moves_first_axis(node: NodeProto) -> bool:
    """Whether the first axis becomes the last or the one before it, and the others keep their order."""
    perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
    return len(perm) > 2 and 0 in perm[-2:] and sorted(perm) == [0, *(axis for axis in perm if axis)]
