# SPDX-License-Identifier: Apache-2.0
"""The types of a model's values, declared in it, for OpenVINO's built-in provider.

Where the provider computes one group of nodes, ONNX Runtime (1.24) forgets the shapes of what the group makes, unless the model declares
them. Another group that reads such a value is then refused: OpenVINO does not compute with a tensor of unknown rank.
"""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.engines.session import Payload

#: What OpenVINO says of a tensor of unknown rank.
UNKNOWN_RANK = "with dynamic rank"


def with_types(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the types of the values between its nodes, as far as their ranks can be told."""
    model = payload.adapted.proto
    declared = {value.name for value in model.graph.value_info if value.type.tensor_type.HasField("shape")}
    found = [
        value
        for value in infer(model).graph.value_info
        if value.type.tensor_type.HasField("shape") and value.name not in declared
    ]
    if not found:
        return payload, ()
    names = {value.name for value in found}
    copy = ModelProto()
    copy.CopyFrom(model)
    kept = [value for value in model.graph.value_info if value.name not in names]
    del copy.graph.value_info[:]
    copy.graph.value_info.extend([*kept, *found])
    change = Adaptation(
        "declared_types",
        "",
        f"types of values declared ({len(found)})",
        "ONNX Runtime forgets the shapes of what the OpenVINO execution provider computes, where the model does not declare them",
    )
    return payload.changed(copy, change), (change,)
