# SPDX-License-Identifier: Apache-2.0
"""Models too small for OpenVINO's thread pool: they run in the thread that calls, for half the cost of a call."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from onnx import AttributeProto, ModelProto, TypeProto

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.host.devices import Device

#: Without a stream of its own a request is run by its caller (measured with 2026.4.1: 6 instead of 14 microseconds for
#: a Relu on 64 numbers). Threads are then placed by TBB alone, which is the same for a model that uses but one.
IN_THE_CALLER: Mapping[str, Any] = {"EXCLUSIVE_ASYNC_REQUESTS": True}

_NODES, _ELEMENTS = 64, 16 * 1024
_THREADING = ("NUM_STREAMS", "INFERENCE_NUM_THREADS", "AFFINITY", "ENABLE_CPU_PINNING", "SCHEDULING_CORE_TYPE")


def properties(model: ModelProto, read: Any, device: Device, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What to add to the properties: nothing unless the model is tiny and no thread was asked for."""
    plain = (
        device.kind == "CPU" and given.get("PERFORMANCE_HINT") == "LATENCY" and not any(n in given for n in _THREADING)
    )
    return IN_THE_CALLER if plain and is_tiny(model) and _stays_tiny(read) and _is_known() else {}


def is_tiny(model: ModelProto) -> bool:
    """Whether a model has few nodes, no loop, and inputs and weights of fixed and small sizes."""
    graph = model.graph
    if (
        model.functions
        or len(graph.node) > _NODES
        or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for node in graph.node for a in node.attribute)
    ):
        return False
    sizes = [_elements(value.type) for value in graph.input]
    constants = [a.t.dims for node in graph.node for a in node.attribute if a.type == AttributeProto.TENSOR]
    sizes += [math.prod(dims) for dims in (*constants, *(t.dims for t in graph.initializer))]
    return all(size is not None for size in sizes) and sum(filter(None, sizes)) <= _ELEMENTS


def _stays_tiny(read: Any) -> bool:
    """Whether no value inside the model that OpenVINO read is large, or of a size that only a run shows."""
    return all(
        output.partial_shape.is_static and math.prod(output.shape) <= _ELEMENTS
        for op in read.get_ops()
        for output in op.outputs()
    )


def _elements(kind: TypeProto) -> int | None:
    dims = kind.tensor_type.shape.dim
    if not kind.tensor_type.HasField("shape") or not all(d.HasField("dim_value") for d in dims):
        return None
    return math.prod(d.dim_value for d in dims)


@functools.cache
def _is_known() -> bool:
    """Whether this release of OpenVINO takes the property, which its documentation does not list."""
    ov = runtime.load()
    value = ov.opset8.parameter([1], ov.Type.f32)
    try:
        runtime.core().compile_model(ov.Model([ov.opset8.relu(value)], [value], "probe"), "CPU", dict(IN_THE_CALLER))
    except runtime.all_errors():
        return False
    return True
