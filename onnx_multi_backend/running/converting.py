# SPDX-License-Identifier: Apache-2.0
"""One value that the user gave, brought into the form that engines take."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from onnx_multi_backend import option_words
from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.tensors import OBJECT
from onnx_multi_backend.running.slots import Slot

_WEAK = (bool, int, float, complex, str, bytes)


def convert(value: Any, slot: Slot, label: str) -> Any:
    """Bring one value into the form that engines take: native byte order, the declared dtype, a fitting shape.

    Raises
    ------
    InputError
    """
    where = f"{label}, input {slot.name!r}"
    kind = slot.kind
    if value is None:
        if kind == "optional":
            return None
        raise InputError(f"{where}: None given, and a {slot.info.onnx_type} is not optional. Pass an array.")
    if kind == "optional":
        kind = slot.info.onnx_type.removeprefix("optional(").partition("(")[0]
    if kind == "seq":
        if not isinstance(value, (list, tuple)):
            raise InputError(f"{where}: a {slot.info.onnx_type} is a list of arrays; {type(value).__name__} given.")
        return [_tensor(v, slot, f"{where}[{i}]") if slot.dtype is not None else v for i, v in enumerate(value)]
    if kind != "tensor":
        return value  # maps and sparse tensors: the engine knows best
    return _tensor(value, slot, where)


def _tensor(value: Any, slot: Slot, where: str) -> np.ndarray[Any, Any]:
    array = _as_array(value, slot, where)
    dtype = slot.dtype
    if dtype is not None and (array.dtype is not dtype or dtype == OBJECT):  # object: not all of it need be text
        array = _as_dtype(array, dtype, where)
    _check_shape(array, slot, where)
    if slot.engine_dtype is None:
        return array
    with np.errstate(over="ignore"):  # float64 that an engine computes in float32: what is too large becomes infinite
        return array.astype(slot.engine_dtype)


def adopted_array(array: Any, slot: Slot, where: str) -> Any:
    """An array on a device, checked; nothing there can be converted."""
    if slot.engine_dtype is not None:
        raise InputError(
            f"{where}: the engine takes this {slot.info.onnx_type} as {slot.engine_dtype}, which is made of it on the host. "
            f"Copy it to the CPU first, or prepare with {option_words.given('adapt', False)}."
        )
    if array.dtype != slot.dtype:
        raise InputError(f"{where}: dtype {array.dtype} given, the model wants {slot.dtype}. Convert it on the device.")
    _check_shape(array, slot, where)
    return array


def _check_shape(array: Any, slot: Slot, where: str) -> None:
    if not slot.shape_fits(array.shape):
        declared = slot.info.shape or ()
        if slot.rank != len(array.shape):
            raise InputError(f"{where}: shape {array.shape} has rank {len(array.shape)}; the model wants {slot.info}.")
        axis, size = next((a, s) for a, s in slot.fixed if array.shape[a] != s)
        raise InputError(
            f"{where}: dimension {axis} is {array.shape[axis]} in the given shape {array.shape}; the model fixes it to "
            f"{size} ({slot.info.name}: {list(declared)})."
        )


def _as_array(value: Any, slot: Slot, where: str) -> np.ndarray[Any, Any]:
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # it is imported when it is first used
        raise InputError(
            f"{where}: engines do not support masks. Fill the masked elements first (array.filled(value))."
        )
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, _WEAK):  # Python's own numbers have no dtype to hold against them
        try:
            if _fits(value, slot.dtype):
                return np.array(value, dtype=slot.dtype)
            raise TypeError(f"a {type(value).__name__} is not converted to it")
        except (OverflowError, ValueError, TypeError) as error:
            raise InputError(f"{where}: {value!r} is not a {slot.info.onnx_type}: {error}.") from error
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except Exception:  # whatever the user's own class raises
            pass  # on another device, read-only, or of a type that DLPack or numpy lacks: __array__ may know
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except Exception as error:  # whatever the user's own class raises
            raise InputError(
                f"{where}: numpy cannot read this {type(value).__name__}: {error}. Copy it to the CPU first."
            ) from error
    cure = "" if slot.dtype is None else f" Make one of a list with numpy.array(value, {str(slot.dtype)!r})."
    raise InputError(
        f"{where}: {type(value).__name__} given where a numpy array is needed, or an object with __dlpack__ or __array__.{cure}"
    )


def _fits(value: Any, dtype: np.dtype[Any] | None) -> bool:
    """Whether a Python scalar is of a kind that a dtype holds: no float for integers, no text for numbers."""
    if dtype is None or dtype == OBJECT:
        return isinstance(value, (str, bytes))
    if isinstance(value, (str, bytes)):
        return False
    kinds: tuple[type, ...] = {"b": (bool,), "i": (int,), "u": (int,), "c": (int, float, complex)}.get(
        dtype.kind, (int, float)
    )
    integer = "int" in dtype.name  # ml_dtypes' int4 and its like have the kind V
    return isinstance(value, (int,) if integer else kinds)


def _as_dtype(array: np.ndarray[Any, Any], dtype: np.dtype[Any], where: str) -> np.ndarray[Any, Any]:
    if dtype == OBJECT and array.dtype.kind in "USTO":
        return array if _all_text(array) else _text(array, where)
    if array.dtype == dtype:
        return array.view(dtype)  # longlong is int64 by another number, and engines go by the number
    if array.dtype.newbyteorder("=") == dtype:
        return array.astype(dtype)
    wanted = "strings" if dtype == OBJECT else dtype.name
    raise InputError(
        f"{where}: dtype {array.dtype.name} given, the model wants {wanted}. Convert it, for example with "
        f"array.astype({'object' if dtype == OBJECT else dtype.name!r})."
    )


def _all_text(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype == OBJECT and all(type(v) is str for v in array.flat)


def _text(array: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    made = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        if isinstance(value, bytes):
            try:
                value = value.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(f"{where}: element {index} is not text in UTF-8: {error}.") from error
        if not isinstance(value, str):
            raise InputError(f"{where}: element {index} is a {type(value).__name__}, not a string.")
        made[index] = str(value)
    return made
