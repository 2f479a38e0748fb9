# SPDX-License-Identifier: Apache-2.0
"""Shapes with which no model is test-compiled: OpenVINO, and its execution provider, takes the memory of a fixed shape when it compiles.

A model that declares an input of 2**31 elements may cost nothing before it runs; a node that reads it, shown with that shape, took 16 GiB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnx import ModelProto, ValueInfoProto

from onnx_multi_backend.models.plausible import MOST_ELEMENTS


def without_vast(model: ModelProto) -> ModelProto:
    """The model with tensors beyond that of sizes that are known only when it runs; itself where it has none."""
    if not has_vast(model):
        return model
    opened = ModelProto()
    opened.CopyFrom(model)
    for value in _vast(opened):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value > 1:
                dim.ClearField("dim_value")
    return opened


def has_vast(model: ModelProto) -> bool:
    """Whether it declares such a tensor."""
    return next(_vast(model), None) is not None


def _vast(model: ModelProto) -> Iterator[ValueInfoProto]:
    graph = model.graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        sizes = (dim.dim_value if dim.HasField("dim_value") else 1 for dim in value.type.tensor_type.shape.dim)
        if math.prod(sizes) > MOST_ELEMENTS:  # be it of one row, where their number is open
            yield value
