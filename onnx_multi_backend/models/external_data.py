# SPDX-License-Identifier: Apache-2.0
"""Weights that lie in files beside the model."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto, TensorProto
from onnx.external_data_helper import load_external_data_for_tensor

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models.graph_walk import all_tensors
from onnx_multi_backend.models.own_file import fill, is_in, may_stay
from onnx_multi_backend.models.tensors import PACKED_BITS, numpy_dtype

#: The fields of values, and of where they are.
_VALUES: Sequence[Any] = (
    *("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"),
    *("external_data", "data_location"),
)

#: What ONNX Runtime writes for a file where a tensor lies in its own memory, and then reads from that address.
_ADDRESSES = "*/_ORT_MEM_ADDR_/"


def has_external_data(model: ModelProto) -> bool:
    """True when any tensor of the model lies in another file."""
    return next(external_tensors(model), None) is not None


def load_values(tensor: TensorProto, path: Path) -> None:
    """Load the values of a tensor that lie in the model's own file, or in another one."""
    if is_in(path, tensor):
        fill(tensor, path)
    elif tensor.data_location == TensorProto.EXTERNAL:
        load_from(path.parent, tensor)


def load_from(folder: Path, tensor: TensorProto) -> None:
    """Load the values of a tensor that lie in a file of this folder."""
    load_external_data_for_tensor(tensor, str(folder))
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")


def with_values(model: ModelProto, folder: Path, *, copied: bool, but: Path | None = None) -> ModelProto:
    """The model with the values of all tensors that lie in files of this folder; the very same one where none do.

    Parameters
    ----------
    copied : bool
        The model is a copy already, and may be changed.
    but : Path, optional
        The model's own file, whose tensors stay there.
    """
    if all(is_in(but, tensor) for tensor, _ in external_tensors(model)):
        return model
    made = model
    if not copied:
        made = ModelProto()
        made.CopyFrom(model)
    _read((found for found in external_tensors(made) if not is_in(but, found[0])), folder)
    return made


def read_what_tells(tensors: Iterable[TensorProto], path: Path) -> None:
    """Read the values in other files that decide what becomes of the model, and the few: axes, sizes, scales."""
    _read(
        (
            (tensor, fields)
            for tensor, fields in _external(tensors)
            if not is_in(path, tensor)
            and all(size >= 0 for size in tensor.dims)  # else it is not valid, which the checker says
            and not may_stay(tensor.data_type, bytes_of(tensor))
        ),
        path.parent,
    )


def _read(tensors: Iterable[tuple[TensorProto, dict[str, str]]], folder: Path) -> None:
    """Read the values of tensors that lie in files of a folder."""
    by_file: dict[str, list[tuple[TensorProto, dict[str, str]]]] = {}
    for tensor, fields in tensors:
        by_file.setdefault(fields["location"], []).append((tensor, fields))
    for location, in_it in by_file.items():
        with (folder / location).open("rb") as stream:  # onnx's own reading takes no links, caches consist of them
            for tensor, fields in in_it:
                stream.seek(int(fields.get("offset", 0)))
                raw = stream.read(int(fields.get("length", bytes_of(tensor))))
                for field in _VALUES:  # of which engines read none there
                    tensor.ClearField(field)
                tensor.raw_data = raw


def external_tensors(model: ModelProto) -> Iterator[tuple[TensorProto, dict[str, str]]]:
    """Each tensor that lies in another file, and where: ``location``, and it may be ``offset`` and ``length``."""
    return _external(all_tensors(model))


def _external(tensors: Iterable[TensorProto]) -> Iterator[tuple[TensorProto, dict[str, str]]]:
    for tensor in tensors:
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor, {entry.key: entry.value for entry in tensor.external_data}


def leads_out(model: ModelProto, folder: Path) -> bool:
    """Whether weights are links that lead out of the model's folder, as the caches of model hubs have them."""
    inside = folder.resolve()
    locations = {fields["location"] for _, fields in external_tensors(model)}
    return any(not (folder / location).resolve().is_relative_to(inside) for location in locations)


def without_links(model: ModelProto, folder: Path) -> tuple[ModelProto, Path]:
    """A copy of the model that names the files which the links lead to, and the folder that holds them all."""
    copy = ModelProto()
    copy.CopyFrom(model)
    external = list(external_tensors(copy))
    files = {fields["location"]: (folder / fields["location"]).resolve() for _, fields in external}
    common = Path(os.path.commonpath([file.parent for file in files.values()]))
    for tensor, fields in external:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = files[fields["location"]].relative_to(common).as_posix()
    return copy, common


def check_external_data(tensors: Iterable[TensorProto], *, path: Path | None, label: str) -> tuple[Path, ...]:
    """Hold every tensor that lies in another file to what is there.

    Returns
    -------
    tuple of Path
        The files.

    Raises
    ------
    InvalidModelError
        The file is missing, too short, outside the model's folder, or cannot be found because the model has no path.
    """
    found: dict[str, Path] = {}
    sizes: dict[Path, int] = {}
    for tensor, fields in _external(tensors):
        where = f"{label}: external data of tensor {tensor.name!r}"
        if path is not None and is_in(path, tensor):
            if not {"offset", "length"} <= fields.keys():
                raise InvalidModelError(f"{where} is the model's own file, without offset and length. Export it again.")
            _check_range(tensor, fields, path, where, sizes)
            continue
        location = fields.get("location", "")
        if location not in found:
            found[location] = _file(path, location, where)
        _check_range(tensor, fields, found[location], where, sizes)
    return tuple(dict.fromkeys(found.values()))


def _file(path: Path | None, location: str, where: str) -> Path:
    """The file of a location, below the model's folder."""
    if path is None:
        raise InvalidModelError(
            f"{where} lies in the file {location!r}, and a model given as bytes or ModelProto has no folder to "
            "look in. Pass the model's path, or load its weights first (onnx.load_external_data_for_model)."
        )
    folder = path.parent
    if location.startswith(_ADDRESSES):
        raise InvalidModelError(f"{where} is an address in memory, which no file can name. Export it again.")
    file = folder / location
    try:
        inside = location != "" and _inside(path, location)
        is_there = inside and file.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # no file can have this name; a loop of links
        why = getattr(error, "strerror", None) or error  # without the name again, which may be long
        raise InvalidModelError(f"{where} cannot be found: {location[:80]!r}: {why}. Export it again.") from error
    if not location or os.path.isabs(location) or ".." in Path(location).parts or not inside:
        raise InvalidModelError(
            f"{where} points outside the model's folder: {location!r}. Only files below '{folder}' are read; move "
            "the file there and correct the location (onnx.save writes it right)."
        )
    if not is_there:
        raise InvalidModelError(f"{where} is missing: there is no file '{file}'. Put it beside the model.")
    return file


def _check_range(
    tensor: TensorProto, fields: Mapping[str, str], file: Path, where: str, sizes: dict[Path, int]
) -> None:
    """Hold a tensor's place to its file, whose size is looked up once."""
    needed = bytes_of(tensor)
    try:
        offset, length = int(fields.get("offset", 0)), int(fields.get("length", needed))
    except ValueError:
        raise InvalidModelError(f"{where} has an offset or length that is not a number. Export it again.") from None
    if offset < 0 or length < needed:
        raise InvalidModelError(
            f"{where} has offset {offset} and length {length}; its shape and type need {needed} bytes. Export it again."
        )
    end = offset + length
    if (size := sizes.get(file)) is None:
        size = sizes[file] = file.stat().st_size
    if end > size:
        raise InvalidModelError(f"{where} is truncated: it ends at byte {end} of '{file}', which has {size} bytes.")


def bytes_of(tensor: TensorProto) -> int:
    """How many bytes a tensor of this shape and type takes."""
    bits = PACKED_BITS.get(tensor.data_type) or 8 * numpy_dtype(tensor.data_type).itemsize
    return -(-math.prod(tensor.dims) * bits // 8)


def _inside(model_path: Path, location: str) -> bool:
    """A symbolic link may lead to the folder of the model's own link target (caches do that), nowhere else."""
    target = (model_path.parent / location).resolve()
    return any(target.is_relative_to(f) for f in (model_path.parent.resolve(), model_path.resolve().parent))
