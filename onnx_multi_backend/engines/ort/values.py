# SPDX-License-Identifier: Apache-2.0
"""The slow, exact path for element types that numpy lacks: OrtValues filled and read byte by byte."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.models.tensors import PACKED_BITS, WIDER, element_name, numpy_dtype, pack, unpack

_EXOTIC = {f"tensor({element_name(t)})": t for t in WIDER}


def exotic_type(onnx_type: str) -> int | None:
    """The element type of a tensor that numpy has no dtype for; None for any other type."""
    return _EXOTIC.get(onnx_type)


def to_ort_value(array: np.ndarray[Any, Any], elem_type: int | None) -> Any:
    """An OrtValue on the CPU with a copy of the array; `elem_type` only for exotic types."""
    ort_value = runtime.load().OrtValue
    if elem_type is None:
        return ort_value.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    value = ort_value.ortvalue_from_shape_and_type(list(array.shape), elem_type)
    if elem_type in PACKED_BITS:
        raw = pack(array, PACKED_BITS[elem_type])
    else:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if raw.nbytes:
        ctypes.memmove(value.data_ptr(), raw.ctypes.data, raw.nbytes)
    return value


def declared_shape(info: Any) -> list[int | str | None] | None:
    """The shape of an input or output of a session, which ONNX Runtime cannot return where a dimension's name is not UTF-8: None."""
    try:
        return list(info.shape)
    except UnicodeDecodeError:
        return None


def to_array(value: Any) -> Any:
    """The array in an OrtValue, None when it is empty; the caller owns it."""
    if not value.has_value():
        return None
    elem_type = exotic_type(value.data_type())
    if elem_type is None:
        return np.array(value.numpy())
    shape = tuple(value.shape())
    size = int(np.prod(shape, dtype=np.int64))
    bits = PACKED_BITS.get(elem_type, 8 * numpy_dtype(elem_type).itemsize)
    raw = (
        np.frombuffer(ctypes.string_at(value.data_ptr(), -(-size * bits // 8)), np.uint8)
        if size
        else np.empty(0, np.uint8)
    )
    if elem_type in PACKED_BITS:
        return unpack(raw, elem_type, shape)
    return raw.view(numpy_dtype(elem_type)).reshape(shape).copy()
