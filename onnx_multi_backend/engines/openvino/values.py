# SPDX-License-Identifier: Apache-2.0
"""Arrays to OpenVINO tensors and back."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.models.tensors import PACKED_BITS, WIDER, numpy_dtype, pack, unpack

_PLAIN = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
_EXOTIC = {numpy_dtype(t): t for t in WIDER}


def is_plain(element_type: Any, dtype: np.dtype[Any] | None = None) -> bool:
    """Whether numpy sees a tensor's memory as what it is: neither text nor a type that numpy lacks.

    Parameters
    ----------
    element_type : openvino.Type
    dtype : numpy.dtype or None
        The declared dtype.
    """
    return dtype not in _EXOTIC and element_type in _plain_types()


@functools.cache
def _plain_types() -> frozenset[Any]:
    types = runtime.load().Type
    return frozenset(types(np.dtype(name)) for name in _PLAIN)


def to_tensor(array: np.ndarray[Any, Any], element_type: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """A tensor, and the array whose memory it shares.

    The tensor does not keep that array alive: the caller holds it until the run is over. OpenVINO shares only
    contiguous, writeable memory and copies none by itself.
    """
    ov = runtime.load()
    if array.size == 0:
        return ov.Tensor(element_type, ov.Shape(list(array.shape))), array
    elem_type = _EXOTIC.get(array.dtype)
    if elem_type is not None:
        bits = PACKED_BITS.get(elem_type)
        raw = pack(array, bits) if bits else _shareable(array).reshape(-1).view(np.uint8)
        return ov.Tensor(raw, ov.Shape(list(array.shape)), element_type), raw
    array = _shareable(array)
    return ov.Tensor(array, True), array


def is_packed(dtype: np.dtype[Any]) -> bool:
    """Whether several elements of this dtype share a byte at OpenVINO, and not in numpy."""
    return _EXOTIC.get(dtype) in PACKED_BITS


def _shareable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.flags.carray else np.array(array, order="C")


def to_array(tensor: Any, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    """A copy of a tensor's content that the caller owns.

    Parameters
    ----------
    dtype : numpy.dtype or None
        The declared dtype, which tells the types that numpy lacks from the integers that carry them.
    """
    elem_type = _EXOTIC.get(dtype) if dtype is not None else None
    if elem_type is None or dtype is None:
        return np.array(tensor.data)
    shape = tuple(tensor.shape)
    if 0 in shape:
        return np.empty(shape, dtype)
    raw = np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)
    if elem_type in PACKED_BITS:
        return unpack(raw, elem_type, shape)
    return raw.view(dtype).reshape(shape).copy()
