# SPDX-License-Identifier: Apache-2.0
"""The three forms of inputs (one array, a sequence in input order, a mapping by name), checked against the model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.tensors import OBJECT, TensorInfo, numpy_dtype
from onnx_multi_backend.sessions.signature import Signature

#: Takes over an array on a device; None for anything that the host can read.
Adopt = Callable[[Any], Any]


class DeviceFeeds(dict[str, Any]):
    """Feeds of which some lie on a device."""


_ARRAY = np.ndarray
_WEAK = (bool, int, float, complex, str, bytes)


class Slot:
    """One graph input: what it must be, and how the engine wants it.

    Parameters
    ----------
    info : TensorInfo
        As the user's model declares it.
    engine_name : str
        The engine's name for it.
    engine_dtype : numpy.dtype or None
        The dtype that the engine takes instead of the declared one, or None when it is the same.
    """

    __slots__ = ("dtype", "engine_dtype", "engine_name", "exact", "fast", "fixed", "info", "kind", "name", "rank")

    def __init__(self, info: TensorInfo, engine_name: str, engine_dtype: np.dtype[Any] | None) -> None:
        self.info = info
        self.name = info.name
        self.engine_name = engine_name
        self.engine_dtype = engine_dtype
        self.dtype = info.dtype
        self.kind = info.onnx_type.partition("(")[0]
        self.rank = -1 if info.shape is None else len(info.shape)
        self.fixed = tuple((i, d) for i, d in enumerate(info.shape or ()) if isinstance(d, int))
        #: The one shape that fits, where every dimension is fixed.
        self.exact = info.shape if len(self.fixed) == self.rank else None
        #: Whether an ndarray of the right dtype and shape can go to the engine as it is.
        self.fast = self.kind == "tensor" and engine_dtype is None and self.dtype is not None and self.dtype != OBJECT

    def shape_fits(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape has the declared rank and the declared fixed dimensions."""
        if shape == self.exact:
            return True
        if self.rank != len(shape):
            return self.rank < 0
        for axis, size in self.fixed:
            if shape[axis] != size:
                return False
        return True


class FeedMaker:
    """Turns what a user passes to `run` into what an engine is fed.

    Parameters
    ----------
    signature : Signature
        Inputs with a default can be given by name.
    adopt : callable or None
        Takes over what lies on a device where the engine can read it, and returns None for what does not.

    Attributes
    ----------
    by_engine_name : dict of str to Slot
    """

    def __init__(self, signature: Signature, from_device: Adopt | None = None) -> None:
        def slot(info: TensorInfo) -> Slot:
            edge = signature.input_boundary_types.get(info.name)
            return Slot(info, edge.engine_name, numpy_dtype(edge.elem_type)) if edge else Slot(info, info.name, None)

        self._slots = slots = tuple(map(slot, signature.inputs))
        overridable = map(slot, signature.overridable)
        self._by_name = {s.name: s for s in (*slots, *overridable)}
        self.by_engine_name = {s.engine_name: s for s in self._by_name.values()}
        self._adopt = from_device
        self._required = {s.name for s in slots}
        self._label = signature.label
        self._only = self._slots[0] if len(self._slots) == 1 and self._slots[0].fast else None
        self._all_fast = all(s.fast for s in self._slots)

    def __call__(self, inputs: Any) -> dict[str, Any]:
        """Check inputs and name them as the engine does.

        Raises
        ------
        InputError
            Too few or too many, an unknown or missing name, a wrong dtype, rank or fixed dimension, or None where the
            model has no optional.
        """
        kind = type(inputs)
        only = self._only
        if only is not None:
            if kind is _ARRAY:
                value = inputs
            elif kind is dict:
                value = inputs.get(only.name) if len(inputs) == 1 else None
            else:
                value = inputs[0] if (kind is list or kind is tuple) and len(inputs) == 1 else None
            if (
                type(value) is _ARRAY
                and value.dtype is only.dtype
                and (value.shape == only.exact or only.shape_fits(value.shape))
            ):
                return {only.engine_name: value}
        elif self._all_fast and kind in (list, tuple, dict) and len(inputs) == len(self._slots):
            feeds = {}
            for i, slot in enumerate(self._slots):
                value = inputs.get(slot.name) if kind is dict else inputs[i]
                if type(value) is not _ARRAY or value.dtype is not slot.dtype or not slot.shape_fits(value.shape):
                    break
                feeds[slot.engine_name] = value
            else:
                return feeds
        return self._with_care(inputs)

    def _with_care(self, inputs: Any) -> dict[str, Any]:
        named = self._named(inputs)
        unknown = [name for name in named if name not in self._by_name]
        if unknown:
            raise InputError(
                f"{self._label} has no input {', '.join(map(repr, unknown))}. Its inputs are {self._list_inputs()}."
            )
        missing = [s.name for s in self._slots if s.name not in named]
        if missing:
            raise InputError(
                f"{self._label}: {', '.join(map(repr, missing))} missing. Its inputs are {self._list_inputs()}."
            )
        feeds: dict[str, Any] = {}
        adopted = False
        for name, value in named.items():
            slot = self._by_name[name]
            array = self._adopt(value) if self._adopt is not None else None
            if array is not None:
                adopted = True
                feeds[slot.engine_name] = _adopted(array, slot, f"{self._label}, input {name!r}")
            else:
                feeds[slot.engine_name] = convert(value, slot, self._label)
        return DeviceFeeds(feeds) if adopted else feeds

    def _named(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            return inputs
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(values) != len(self._slots):
            form = f"{len(values)} given" if isinstance(inputs, (list, tuple)) else "a single value given"
            raise InputError(
                f"{self._label} takes {len(self._slots)} input{'' if len(self._slots) == 1 else 's'}, {form}. Pass "
                f"a list in this order, or a mapping by name: {self._list_inputs()}."
            )
        return {slot.name: value for slot, value in zip(self._slots, values, strict=True)}

    def _list_inputs(self) -> str:
        return "; ".join(str(s.info) for s in self._by_name.values()) or "none"


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


def _adopted(array: Any, slot: Slot, where: str) -> Any:
    """An array on a device, checked; nothing there can be converted."""
    if slot.engine_dtype is not None:
        raise InputError(
            f"{where}: the engine takes this {slot.info.onnx_type} as {slot.engine_dtype}, which is made of it on the host. "
            "Copy it to the CPU first, or prepare with adapt=False."
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
        raise InputError(f"{where}: engines know no masks. Fill the masked elements first (array.filled(value)).")
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
            raise InputError(f"{where}: {value!r} is no {slot.info.onnx_type}: {error}.") from error
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
    raise InputError(
        f"{where}: a numpy array (or anything with __dlpack__ or __array__) is wanted, {type(value).__name__} given."
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
