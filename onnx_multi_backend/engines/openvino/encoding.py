# SPDX-License-Identifier: Apache-2.0
"""Tensors that OpenVINO reads wrongly, although the format allows them.

Its ONNX frontend (seen with 2026.4.1) misreads uint32 values in ``uint64_data`` and bfloat16 values in ``int32_data``,
where onnx.proto puts them, and takes the same values right from ``raw_data``.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import ModelProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.models.graph_walk import all_tensors
from onnx_multi_backend.models.tensors import is_whole

_MISREAD: dict[int, str] = {TensorProto.UINT32: "uint64_data", TensorProto.BFLOAT16: "int32_data"}


def misread(tensors: Iterable[TensorProto]) -> bool:
    """Whether one of a model's tensors is in an encoding that OpenVINO misreads."""
    return any(_is_misread(tensor) for tensor in tensors)


def with_raw_data(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model with the same values in ``raw_data``, and the record of that."""
    copy = ModelProto()
    copy.CopyFrom(model)
    changes = []
    for tensor in all_tensors(copy):
        if _is_misread(tensor):
            raw = numpy_helper.to_array(tensor).tobytes()
            tensor.ClearField(_MISREAD[tensor.data_type])
            tensor.raw_data = raw
            reason = "OpenVINO misreads these values in the typed field"
            changes.append(Adaptation("raw_data", tensor.name, "the same values in raw_data", reason))
    return copy, tuple(changes)


def _is_misread(tensor: TensorProto) -> bool:
    return tensor.data_type in _MISREAD and bool(getattr(tensor, _MISREAD[tensor.data_type])) and is_whole(tensor)
