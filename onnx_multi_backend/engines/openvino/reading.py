# SPDX-License-Identifier: Apache-2.0
"""Giving OpenVINO a model whose weights lie in other files, once the model itself is no longer the file beside them.

OpenVINO looks for weights in the folder of the model's file, maps them into memory, and takes no symbolic link that leads
out of the folder. So a changed model is written to a folder of its own, beside hard links to the weights: nothing of them
is read or copied. Where none can be made (another file system, no right to it), OpenVINO is given the weights' addresses
in mapped memory instead, in the way that ONNX Runtime's provider gives them (``tensor_external_data.cpp``,
``ORT_MEM_ADDR``), and copies them once.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.models.external_data import bytes_of, external_tensors, load_from

_IN_MEMORY = "*/_ORT_MEM_ADDR_/*"


def read(model: ModelProto, folder: Path | None) -> tuple[Any, object]:
    """Read a model from memory, its external data from the folder where its own file lies.

    Returns
    -------
    model : openvino.Model
    memory : object
        To be held as long as the model, and what is compiled of it.
    """
    locations = {fields["location"] for _, fields in external_tensors(model)}
    if folder is None or not locations:
        return runtime.core().read_model(model.SerializeToString()), None
    for place in (None, folder):  # the system's folder for such files, then the one that is on the same file system
        try:
            with tempfile.TemporaryDirectory(prefix=".omb_", dir=place, ignore_cleanup_errors=True) as own:
                return runtime.core().read_model(_written(model, folder, Path(own), locations)), None
        except OSError:
            continue
    return _read_from_memory(model, folder)


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
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor, fields in external_tensors(copy):
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
    address = maps[location].ctypes.data + int(fields.get("offset", 0))
    del tensor.external_data[:]
    for key, value in {"location": _IN_MEMORY, "offset": address, "length": length}.items():
        tensor.external_data.add(key=key, value=str(value))
