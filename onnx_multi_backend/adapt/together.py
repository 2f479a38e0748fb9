# SPDX-License-Identifier: Apache-2.0
"""Models of one node, side by side in one model: what an engine says of all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto

from onnx_multi_backend.adapt.renaming import renamed_graph


def together(models: Sequence[ModelProto]) -> ModelProto | None:
    """The model that holds several; None where they are of different opsets, or have functions."""
    first = models[0]
    imports = sorted((o.domain, o.version) for o in first.opset_import)
    joined = ModelProto(ir_version=first.ir_version, opset_import=first.opset_import)
    joined.graph.name = "several"
    for number, model in enumerate(models):
        same = sorted((o.domain, o.version) for o in model.opset_import) == imports
        if not same or model.functions or model.ir_version != first.ir_version:
            return None
        own = ModelProto()
        own.CopyFrom(model)
        renamed_graph(own.graph, lambda name, number=number: f"m{number}_{name}")  # type: ignore[misc]
        for value in (*own.graph.input, *own.graph.output, *own.graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.HasField("dim_param"):
                    dim.dim_param = f"m{number}_{dim.dim_param}"
        joined.graph.node.extend(own.graph.node)
        joined.graph.input.extend(own.graph.input)
        joined.graph.output.extend(own.graph.output)
        joined.graph.initializer.extend(own.graph.initializer)
    return joined
