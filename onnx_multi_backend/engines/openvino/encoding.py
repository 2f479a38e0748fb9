# SPDX-License-Identifier: Apache-2.0
"""Tensors that OpenVINO reads wrongly, although the format allows them.

Its ONNX frontend (seen with 2025.4.1 in ONNX Runtime's provider, and with 2026.4.1) misreads uint32 values in ``uint64_data`` and bfloat16 values in
``int32_data``, where onnx.proto puts them, and takes the same values right from ``raw_data``. A constant of 4 bits without elements becomes a scalar
when it is computed ahead; one of 8 bits keeps its shape.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import ModelProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.models.graph_walk import all_tensors
from onnx_multi_backend.models.tensors import is_whole

_MISREAD: dict[int, str] = {TensorProto.UINT32: "uint64_data", TensorProto.BFLOAT16: "int32_data"}

_OF_8_BITS: dict[int, int] = {TensorProto.INT4: TensorProto.INT8, TensorProto.UINT4: TensorProto.UINT8}


def misread(tensors: Iterable[TensorProto], *, in_onnx_runtime: bool = False) -> bool:
    """Whether one of a model's tensors is in an encoding that OpenVINO misreads; see `with_raw_data`."""
    return any(_is_misread(tensor) or (not in_onnx_runtime and _loses_shape(tensor)) for tensor in tensors)


def with_raw_data(model: ModelProto, *, in_onnx_runtime: bool = False) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model with the same values in ``raw_data``, or in 8 bits, and the record of that.

    Parameters
    ----------
    in_onnx_runtime : bool
        Whether ONNX Runtime reads the model first, which computes of constants without elements and whose types are ONNX's.
    """
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
        elif not in_onnx_runtime and _loses_shape(tensor):
            old, tensor.data_type = TensorProto.DataType.Name(tensor.data_type), _OF_8_BITS[tensor.data_type]
            change = f"{old} to {TensorProto.DataType.Name(tensor.data_type)}"
            changes.append(Adaptation("empty_4_bits", tensor.name, change, "OpenVINO makes a scalar of it"))
    return copy, tuple(changes)


def _is_misread(tensor: TensorProto) -> bool:
    return tensor.data_type in _MISREAD and bool(getattr(tensor, _MISREAD[tensor.data_type])) and is_whole(tensor)


def _loses_shape(tensor: TensorProto) -> bool:
    return tensor.data_type in _OF_8_BITS and 0 in tensor.dims
