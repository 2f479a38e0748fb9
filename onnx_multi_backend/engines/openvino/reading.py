# SPDX-License-Identifier: Apache-2.0
"""Giving OpenVINO a model whose weights lie in files, once the model itself is no longer the one in its file.

What lies in the model's own file is mapped into memory, and OpenVINO is given its address, in the way that ONNX Runtime's provider gives it
(``tensor_external_data.cpp``, ``ORT_MEM_ADDR``), and copies it once: in the encoded model it would be copied five times, and twice where OpenVINO
reads the file itself.

For other files, OpenVINO looks in the folder of the model's file, maps them into memory, and takes no symbolic link that leads
out of the folder. So a changed model is written to a folder of its own, beside hard links to the weights: nothing of them
is read or copied. Where none can be made (another file system, no right to it), it is given their addresses in mapped memory, too.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.models import own_file
from onnx_multi_backend.models.external_data import bytes_of, external_tensors, load_from
from onnx_multi_backend.models.graph_walk import all_tensors
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.models.origin import stamp_of
from onnx_multi_backend.models.own_file import is_in
from onnx_multi_backend.models.stamp import Stamp

_IN_MEMORY = "*/_ORT_MEM_ADDR_/*"


def read(model: ModelProto, loaded: LoadedModel) -> tuple[Any, object]:
    """Read a model that was made from a loaded one.

    Returns
    -------
    model : openvino.Model
    memory : object
        To be held as long as the model, and what is compiled of it.

    Raises
    ------
    InvalidModelError
        A file was changed meanwhile.
    """
    whole = loaded.whole(model, own=False)
    path = loaded.path
    if path is None or not holds_weights(whole, loaded):
        return _read(whole, path.parent if path is not None else None)
    loaded.origin.check_unchanged()
    data = _mapped(path, loaded)
    held = np.frombuffer(data, np.uint8)  # until OpenVINO has copied them
    if whole is loaded.proto and (encoded := _as_stored(data, held.ctypes.data, loaded)) is not None:
        made: tuple[Any, object] = (runtime.core().read_model(encoded), None)
    else:
        whole = _copy(whole) if whole is model else whole
        _with_addresses(whole, path, held.ctypes.data)
        made = _read(whole, path.parent)  # links to other files change what their stamps say
    if stamp_of(path) != loaded.stamp:
        raise loaded.origin.changed()
    return made


def _mapped(path: Path, loaded: LoadedModel) -> mmap.mmap:
    """The model's own file in memory."""
    try:
        with path.open("rb") as stream:
            if Stamp.of_status(os.fstat(stream.fileno())) == loaded.stamp:
                return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError:  # it was removed
        pass
    raise loaded.origin.changed()


def _as_stored(data: mmap.mmap, address: int, loaded: LoadedModel) -> bytes | None:
    """The model as its file has it, its weights by address; None where it is another one, or more lies in other places."""
    assert loaded.path is not None
    if loaded.skeleton is None or loaded.beside:
        return None
    encoded = own_file.by_address(data, address, _IN_MEMORY)
    # A tensor of the file itself may name the file.
    return None if encoded is None or loaded.path.name.encode() in encoded else encoded


def holds_weights(model: ModelProto, loaded: LoadedModel) -> bool:
    """Whether weights were left in the model's own file."""
    return loaded.path is not None and any(is_in(loaded.path, tensor) for tensor in all_tensors(model))


def _read(model: ModelProto, folder: Path | None) -> tuple[Any, object]:
    locations = {fields["location"] for _, fields in _in_other_files(model)}
    if folder is None or not locations:
        return runtime.core().read_model(model.SerializeToString()), None
    for place in (None, folder):  # the system's folder for such files, then the one that is on the same file system
        try:
            with tempfile.TemporaryDirectory(prefix=".omb_", dir=place, ignore_cleanup_errors=True) as own:
                return runtime.core().read_model(_written(model, folder, Path(own), locations)), None
        except OSError:
            continue
    return _read_from_memory(model, folder)


def _copy(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def _in_other_files(model: ModelProto) -> Iterator[tuple[TensorProto, dict[str, str]]]:
    return ((tensor, fields) for tensor, fields in external_tensors(model) if fields["location"] != _IN_MEMORY)


def _with_addresses(model: ModelProto, file: Path, address: int) -> None:
    """Have tensors that lie in the model's own file point to where it lies in memory."""
    for tensor in all_tensors(model):
        if is_in(file, tensor):
            place = {entry.key: entry.value for entry in tensor.external_data}
            _point(tensor, address + int(place["offset"]), int(place["length"]))


def _written(model: ModelProto, folder: Path, own: Path, locations: set[str]) -> str:
    for location in locations:
        link = own / location
        link.parent.mkdir(parents=True, exist_ok=True)
        os.link((folder / location).resolve(), link)
    path = own / "model.onnx"
    while path.exists():  # the weights' file may have this name
        path = path.with_name(f"_{path.name}")
    path.write_bytes(model.SerializeToString())
    return str(path)


def _read_from_memory(model: ModelProto, folder: Path) -> tuple[Any, object]:
    maps: dict[str, np.memmap[Any, Any]] = {}
    copy = _copy(model)
    for tensor, fields in list(_in_other_files(copy)):
        _point_at(tensor, fields, folder, maps)
    return runtime.core().read_model(copy.SerializeToString()), maps


def _point_at(tensor: TensorProto, fields: dict[str, str], folder: Path, maps: dict[str, np.memmap[Any, Any]]) -> None:
    length = int(fields.get("length", bytes_of(tensor)))
    if not length:
        load_from(folder, tensor)
        return
    location = fields["location"]
    if location not in maps:
        maps[location] = np.memmap(folder / location, np.uint8, "r")
    _point(tensor, maps[location].ctypes.data + int(fields.get("offset", 0)), length)


def _point(tensor: TensorProto, address: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in {"location": _IN_MEMORY, "offset": address, "length": length}.items():
        tensor.external_data.add(key=key, value=str(value))
