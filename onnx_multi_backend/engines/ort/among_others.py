# SPDX-License-Identifier: Apache-2.0
"""A node among others: OpenVINO's built-in provider leaves some operators to the CPU in a model of up to three nodes.

Source: ``DataOps::op_is_supported_only_in_model`` and ``GetCapability::Execute`` of ONNX Runtime's OpenVINO provider.
"""

from __future__ import annotations

from onnx import ModelProto, TensorProto, helper

_NAME = "omb_other"


def among_others(model: ModelProto, nodes: int) -> ModelProto:
    """The model with a chain of ordinary nodes beside its own, as many in all as `nodes` or more."""
    made = ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    count = nodes - len(graph.node)
    if count < 1:
        return made
    for i in range(count):
        graph.node.append(helper.make_node("Sigmoid", [f"{_NAME}{i}"], [f"{_NAME}{i + 1}"], name=f"{_NAME}{i}"))
    for values, i in ((graph.input, 0), (graph.output, count)):
        values.append(helper.make_tensor_value_info(f"{_NAME}{i}", TensorProto.FLOAT, [1]))
    return made
