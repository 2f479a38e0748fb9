# SPDX-License-Identifier: Apache-2.0
"""A node among others: OpenVINO's built-in provider leaves some operators to the CPU in a model of up to three nodes.

Source: ``DataOps::op_is_supported_only_in_model`` and ``GetCapability::Execute`` of ONNX Runtime's OpenVINO provider.
"""

from __future__ import annotations

from onnx import ModelProto, TensorProto, helper

from onnx_multi_backend.models.graph_walk import canonical

_NAME = "omb_other"


def why_refused(model: ModelProto) -> str | None:
    """Why the provider takes a node among others, and then cannot read it; None for one that it reads.

    Asked about it alone, it leaves a reduction or a OneHot to the CPU provider.
    Source: ``src/frontends/onnx/frontend/src/op/reduce.cpp`` and ``op/onehot.cpp`` of OpenVINO (2025.4, 2026.4).
    """
    constant = {tensor.name for tensor in model.graph.initializer}
    given = {v.name: v.type.tensor_type for v in model.graph.input if v.name not in constant}
    for node in model.graph.node:
        reduces = node.op_type.startswith("Reduce")
        if canonical(node.domain) or not (reduces or node.op_type == "OneHot") or len(node.input) < 2:
            continue
        second = given.get(node.input[1])
        if second is not None and not (
            second.HasField("shape") and all(d.HasField("dim_value") for d in second.shape.dim)
        ):
            return f"the {'number of its axes' if reduces else 'shape of its depth'} is known only at run time"
    return None


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
