# SPDX-License-Identifier: Apache-2.0
"""Arrays to OpenVINO tensors and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.tensors import PACKED_BITS, WIDER, numpy_dtype, pack, unpack

_EXOTIC = {numpy_dtype(t): t for t in WIDER}


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
        raw = pack(array, bits) if bits else np.array(array, order="C").reshape(-1).view(np.uint8)
        return ov.Tensor(raw, ov.Shape(list(array.shape)), element_type), raw
    if not (array.flags.c_contiguous and array.flags.writeable):
        array = np.array(array, order="C")
    return ov.Tensor(array, True), array


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
