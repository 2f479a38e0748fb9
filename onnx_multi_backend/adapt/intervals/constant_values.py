# SPDX-License-Identifier: Apache-2.0
"""What the elements of constants lie between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.intervals.values import Value, of_type

_T = TensorProto

#: Elements of a constant beyond which its range is its type's.
_MOST_READ = 1 << 20

#: Types whose few elements are read without onnx's function, which takes longer than the elements.
_PLAIN: Mapping[int, np.dtype[Any]] = {
    _T.INT64: np.dtype("<i8"),
    _T.INT32: np.dtype("<i4"),
    _T.FLOAT: np.dtype("<f4"),
    _T.DOUBLE: np.dtype("<f8"),
}
_FEW = 16
#: Floating-point numbers of a constant beyond which nothing is known of them.
_MOST_FLOATS = 64


def of_tensor(tensor: TensorProto) -> Value:
    """A constant. One that lies in a file, or is large, is known by its type alone."""
    kind = tensor.data_type
    whole = of_type(kind)
    if whole.low is None:
        return (_floats(tensor, kind) or whole) if kind in (_T.FLOAT, _T.DOUBLE) else whole
    if kind == _T.BOOL or tensor.data_location == _T.EXTERNAL:
        return whole
    few = _few(tensor, kind)
    if few:
        return Value(kind, min(few), max(few))
    try:
        array = numpy_helper.to_array(tensor)
    except ValueError:  # its size and its bytes disagree, which the checker reports
        return whole
    if not array.size:
        return Value(kind, 0, 0)
    if array.size > _MOST_READ and kind not in (_T.INT64, _T.UINT64, _T.UINT32):
        return whole
    return Value(kind, int(array.min()), int(array.max()))


def _few(tensor: TensorProto, kind: int) -> list[Any]:
    """The elements of a tensor that has few; none of any other."""
    dtype = _PLAIN.get(kind)
    if dtype is None or not tensor.HasField("raw_data"):
        return []
    raw, count = tensor.raw_data, math.prod(tensor.dims)
    if count > _FEW or count < 1 or len(raw) != count * dtype.itemsize:
        return []
    return list(np.frombuffer(raw, dtype).tolist())


def _floats(tensor: TensorProto, kind: int) -> Value | None:
    """Some floating-point numbers, by which sizes are multiplied, or integers raised to powers."""
    if not 0 < math.prod(tensor.dims) <= _MOST_FLOATS or tensor.data_location == _T.EXTERNAL:
        return None
    try:
        numbers = _few(tensor, kind) or numpy_helper.to_array(tensor).ravel().tolist()
    except ValueError:
        return None
    return Value(kind, min(numbers), max(numbers)) if all(map(math.isfinite, numbers)) else None


def of_constant(node: NodeProto) -> Value:
    """What a node Constant makes."""
    for attribute in node.attribute:
        name = attribute.name
        if name == "value":
            return of_tensor(attribute.t)
        if name in ("value_int", "value_ints"):
            numbers = np.atleast_1d(helper.get_attribute_value(attribute))
            return Value(_T.INT64, int(min(numbers, default=0)), int(max(numbers, default=0)))
        if name in ("value_float", "value_floats"):
            return of_type(_T.FLOAT)
    return Value()
