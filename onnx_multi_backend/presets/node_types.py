# SPDX-License-Identifier: Apache-2.0
"""The types of a node's inputs and outputs: of the values that are given, and as the caller describes them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.tensors import OBJECT, numpy_dtype

#: The dtype and the shape of each output.
OutputsInfo = Sequence[tuple[Any, Sequence[int | str | None] | None]]

_MOST = np.iinfo(np.int64).max
_ELEMENTS = tuple(kind for kind in TensorProto.DataType.values() if kind != TensorProto.UNDEFINED)
_HOW = "outputs_info has a pair (dtype, shape) for each output, for example [(numpy.float32, (2, 3))]"


def type_of(value: Any, name: str) -> TypeProto:
    """The type of a value that is given for an input.

    Raises
    ------
    InputError
        ONNX has no such type.
    """
    if isinstance(value, (list, tuple)):
        if not value:
            raise InputError(f"input {name!r}: the type of an empty sequence is not known; run it in a model.")
        return helper.make_sequence_type_proto(type_of(value[0], name))
    array = (
        value if isinstance(getattr(value, "dtype", None), np.dtype) and hasattr(value, "shape") else _read(value, name)
    )
    dtype = np.dtype(object) if array.dtype.kind in "USTO" else array.dtype.newbyteorder("=")
    return helper.make_tensor_type_proto(_elem_type(dtype), list(array.shape))


def _read(value: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value)
    except Exception as error:  # whatever the user's own class raises
        raise InputError(f"input {name!r}: numpy cannot read this {type(value).__name__}: {error}.") from error


def described(outputs_info: OutputsInfo, node: NodeProto) -> list[TypeProto]:
    """The types of a node's outputs as ``outputs_info`` has them.

    Raises
    ------
    InputError
        It has another form, or describes more outputs or fewer.
    """
    if not _is_list(outputs_info):
        raise InputError(f"{_HOW}; {outputs_info!r} was given.")
    count = sum(bool(name) for name in node.output)
    if len(outputs_info) != count:
        raise InputError(f"outputs_info describes {len(outputs_info)} outputs; {node.op_type} has {count}.")
    return [_described(info) for info in outputs_info]


def _described(info: Any) -> TypeProto:
    if not _is_list(info) or len(info) != 2:
        raise InputError(f"{_HOW}; {info!r} was given for one.")
    dtype, shape = info
    return helper.make_tensor_type_proto(
        _described_elem_type(dtype), None if shape is None else _described_shape(shape)
    )


def _described_elem_type(dtype: Any) -> int:
    if isinstance(dtype, numbers.Integral) and dtype in _ELEMENTS and not isinstance(dtype, bool):
        return int(dtype)
    try:
        found = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise InputError(f"{_HOW}, the dtype one of numpy's or a number of onnx.TensorProto's; {dtype!r} was given.")
    return _elem_type(found)


def _described_shape(shape: Any) -> list[int | str | None]:
    sizes = list(shape) if _is_list(shape) or (isinstance(shape, np.ndarray) and shape.ndim == 1) else [shape, ...]
    if not all(size is None or _is_name(size) or _is_size(size) for size in sizes):
        raise InputError(
            f"{_HOW}, the shape a list of sizes, names and None, or None where nothing is known; {shape!r} was given."
        )
    return [size if size is None or isinstance(size, str) else int(size) for size in sizes]


def _is_name(size: Any) -> bool:
    return isinstance(size, str) and not any(
        "\ud800" <= letter <= "\udfff" for letter in size
    )  # what UTF-8 has no code for


def _is_size(size: Any) -> bool:
    return isinstance(size, numbers.Integral) and not isinstance(size, bool) and abs(int(size)) <= _MOST


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _elem_type(dtype: np.dtype[Any]) -> int:
    if dtype == OBJECT or dtype.kind in "UST":
        return int(TensorProto.STRING)
    for elem_type in _ELEMENTS:
        if elem_type != TensorProto.STRING and numpy_dtype(elem_type) == dtype:
            return int(elem_type)
    raise InputError(f"ONNX has no element type for the dtype {dtype.name}.")
