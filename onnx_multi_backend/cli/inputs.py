# SPDX-License-Identifier: Apache-2.0
"""Inputs from files (.npy, .npz, .pb); no file is ever unpickled."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.graph_walk import defaults_of
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.models.tensors import WIDER, TensorInfo, numpy_dtype, tensor_info

#: The dtype that numpy stores instead, for each that numpy lacks.
WIDER_DTYPES = {numpy_dtype(narrow): numpy_dtype(wide) for narrow, wide in WIDER.items()}

#: What numpy and zipfile raise for a file that is damaged, encrypted, packed in a way that they lack, or too large.
_UNREADABLE = (
    *(ValueError, TypeError, LookupError, ArithmeticError, SyntaxError, EOFError, RuntimeError, MemoryError, OSError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)

_Proto = Callable[[bytes], Any]


def read(given: Sequence[str], infos: Sequence[TensorInfo]) -> dict[str, Any]:
    """Read each ``name=file``, or ``file`` where the name is clear.

    Parameters
    ----------
    given : sequence of str
    infos : sequence of TensorInfo
        The inputs of the model.

    Raises
    ------
    InputError
        A file is missing or damaged, a name is missing or given twice.
    """
    by_name = {info.name: info for info in infos}
    values: dict[str, Any] = {}
    for text in given:
        name, path = _split(text)
        for key, value in _values(name, path, by_name).items():
            if key in values:
                raise InputError(f"--input {text}: the input {key!r} is given twice.")
            values[key] = value
    return values


def of_model(model: str) -> tuple[TensorInfo, ...]:
    """The inputs of a model that have no default."""
    graph = load(model).proto.graph
    defaults = defaults_of(graph)
    return tuple(tensor_info(value) for value in graph.input if value.name not in defaults)


def check_files(given: Sequence[str]) -> None:
    """Look for the files before anything slow is done.

    Raises
    ------
    InputError
    """
    for text in given:
        _, path = _split(text)
        if not path.exists():
            raise InputError(f"--input {text}: there is no file '{path}'.")
        if not path.is_file() or path.suffix not in (".npy", ".npz", ".pb"):
            raise InputError(f"--input {text}: '{path}' is not a .npy, .npz or .pb file.")


def _split(text: str) -> tuple[str, Path]:
    name, equals, file = text.rpartition("=")
    if not equals or Path(text).exists():  # a path may hold an equals sign
        return "", Path(text)
    return name, Path(file)


def _values(name: str, path: Path, by_name: Mapping[str, TensorInfo]) -> dict[str, Any]:
    if path.suffix == ".pb":
        name = name or _only_input(path, by_name)
        return {name: _read_proto(path, by_name.get(name))}
    arrays = _read_numpy(path)
    if isinstance(arrays, dict):
        unnamed = len(arrays) == 1 and (name or (len(by_name) == 1 and not set(arrays) & set(by_name)))
        if not unnamed and not name:
            return {key: _fitting(array, by_name.get(key), path) for key, array in arrays.items()}
        if not unnamed:
            raise InputError(
                f"--input {name}={path}: it holds {len(arrays)} arrays ({', '.join(arrays) or 'none'}), and one input "
                f"takes one. Pass --input {path} to give each array to the input of its name."
            )
        arrays = next(iter(arrays.values()))
    name = name or _only_input(path, by_name)
    return {name: _fitting(arrays, by_name.get(name), path)}


def _only_input(path: Path, by_name: Mapping[str, TensorInfo]) -> str:
    if len(by_name) == 1:
        return next(iter(by_name))
    known = "; ".join(map(str, by_name.values())) or "none"
    raise InputError(f"--input {path}: which input? Write --input NAME={path}. The model's inputs: {known}.")


def _read_numpy(path: Path) -> np.ndarray[Any, Any] | dict[str, np.ndarray[Any, Any]]:
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            return {name: content[name] for name in content.files}
    except _UNREADABLE as error:
        if "pickle" in str(error):
            words = "it is damaged, or holds Python objects, which are never unpickled"
        else:
            words = f"it cannot be read: {str(error) or type(error).__name__}"
        raise InputError(f"'{path}' is not a {path.suffix} file of plain arrays: {words}.") from error


def _fitting(array: np.ndarray[Any, Any], info: TensorInfo | None, path: Path) -> np.ndarray[Any, Any]:
    """Give an array the dtype that numpy's file formats cannot hold, where that loses nothing."""
    wanted = info.dtype if info is not None else None
    if wanted is None or wanted not in WIDER_DTYPES or array.dtype == wanted:
        return array
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)  # numpy.save writes the bytes of such a dtype and forgets its name
    if array.dtype != WIDER_DTYPES[wanted]:
        return array
    with np.errstate(all="ignore"):
        narrow = array.astype(wanted)
    if not np.array_equal(narrow.astype(array.dtype), array, equal_nan=array.dtype.kind == "f"):
        raise InputError(
            f"'{path}': the input is {wanted.name}, and not every {array.dtype.name} value of the file is one. Round "
            "them first."
        )
    return narrow


def _read_proto(path: Path, info: TensorInfo | None) -> Any:
    kind = info.onnx_type.partition("(")[0] if info is not None else "tensor"
    proto, convert = _PROTOS.get(kind, (None, None))
    if proto is None or convert is None:
        raise InputError(f"'{path}': an input of type {info and info.onnx_type} cannot be read from a file.")
    message = proto()
    try:
        message.ParseFromString(path.read_bytes())
        if any(t.data_location == onnx.TensorProto.EXTERNAL for t in _tensors(message)):
            raise InputError(f"'{path}' points to data in another file, which is not read.")
        if any(d < 0 for t in _tensors(message) for d in t.dims):
            raise InputError(f"'{path}' is not an ONNX {proto.__name__}, or is damaged: it has a negative dimension.")
        return convert(message)
    except (DecodeError, ValueError, TypeError, KeyError, MemoryError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"'{path}' is not an ONNX {proto.__name__}, or is damaged: {error}.") from error


_PROTOS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "tensor": (onnx.TensorProto, numpy_helper.to_array),
    "seq": (onnx.SequenceProto, numpy_helper.to_list),
    "optional": (onnx.OptionalProto, numpy_helper.to_optional),
}


def _tensors(message: Any) -> list[Any]:
    if isinstance(message, onnx.TensorProto):
        return [message]
    if isinstance(message, onnx.SequenceProto):
        inner = [*message.sequence_values, *message.optional_values]
        return [*message.tensor_values, *(t for m in inner for t in _tensors(m))]
    if isinstance(message, onnx.OptionalProto):
        inner = [message.tensor_value, message.sequence_value, message.optional_value]
        return [
            t
            for f, m in zip(("tensor", "sequence", "optional"), inner, strict=True)
            if message.HasField(f"{f}_value")
            for t in _tensors(m)
        ]
    return []
