# SPDX-License-Identifier: Apache-2.0
"""Compiled models that OpenVINO's CPU plugin runs only to break the process's memory.

Both were seen with OpenVINO 2026.4.1 and end in an abort of the process, sooner or later: a string is copied byte by
byte and then freed twice, and a plain copy of 4-bit elements takes a byte for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.passes.string_flow import has_string_constants
from onnx_multi_backend.engines.deadly import (
    Deadly,
    loss_without_targets,
    overflowing_quotient,
    range_without_end,
    scattered_number,
    unique_of_nothing,
)
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.models.contents import Contents

#: Forms that end the process while a model is compiled, or would once they are rewritten, by operator (seen with 2026.4.1).
DEADLY: Mapping[str, tuple[Deadly, ...]] = {
    "Div": (overflowing_quotient,),
    "NegativeLogLikelihoodLoss": (loss_without_targets,),
    "Range": (range_without_end,),
    "Scatter": (scattered_number,),
    "ScatterElements": (scattered_number,),
    "SoftmaxCrossEntropyLoss": (loss_without_targets,),
    "Unique": (unique_of_nothing,),
}

#: Operators of ONNX Runtime's domain that need two inputs.
_OF_TWO = frozenset(
    {"Attention", "BiasGelu", "DequantizeLinear", "FusedConv", "FusedGemm", "FusedMatMul", "Pad", "QuantizeLinear"}
)

_PACKED = ("i4", "u4", "f4e2m1", "u1", "u2", "u3", "u6", "nf4")


def why_not_read(contents: Contents) -> str | None:
    """Why OpenVINO must not even read a model: it may compute with constant strings while it does, and end the process. None: it may."""
    for node in contents.nodes:
        if node.domain == DOMAIN and not all((*node.input, "", "")[: 2 if node.op_type in _OF_TWO else 1]):
            return f"OpenVINO's frontend may end the process over a {DOMAIN}.{node.op_type} with too few inputs"
    return _no_strings(["constants"]) if has_string_constants(contents) else None


def why_not_compiled(model: ModelProto) -> str | None:
    """Why a model must not be compiled: OpenVINO may break the memory while it computes with constants. None: it may."""
    values = (*model.graph.input, *model.graph.output)
    strings = [v.name for v in values if v.type.tensor_type.elem_type == TensorProto.STRING]
    return _no_strings(strings) if strings else None


def _no_strings(names: list[str]) -> str:
    return f"OpenVINO computes nothing with strings ({', '.join(names)})"


def why_unsafe(compiled: Any) -> str | None:
    """Why a compiled model must not run; None: it may."""
    known = runtime.load().Type
    ports = (*compiled.inputs, *compiled.outputs)
    strings = [port.any_name for port in ports if port.element_type == known.string and port.names]
    if strings:
        return _no_strings(strings)
    packed = [getattr(known, name) for name in _PACKED if hasattr(known, name)]
    if not any(port.element_type in packed for port in ports):
        return None
    for op in compiled.get_runtime_model().get_ops():
        layer = op.get_rt_info()["layerType"]
        kind = layer.value if hasattr(layer, "value") else layer
        if str(kind) == "Identity" and any(value.get_element_type() in packed for value in op.input_values()):
            return f"OpenVINO cannot pass 4-bit elements on as they are (Identity {op.friendly_name!r})"
    return None
