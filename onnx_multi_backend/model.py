# SPDX-License-Identifier: Apache-2.0
"""Loading a model from whatever the user has: a path, bytes or a ModelProto."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.external_data import check_external_data

ModelLike = Union[str, "os.PathLike[str]", bytes, ModelProto]


@dataclass(frozen=True)
class LoadedModel:
    """A model as it was given.

    Attributes
    ----------
    proto : onnx.ModelProto
        The model, its external data not loaded.
    path : Path or None
        The file, when the model was given as one.
    data : bytes or None
        The serialized model, when it was given as bytes or as a ModelProto.
    stamp : tuple of int or None
        Size and time of change of the file.
    """

    proto: ModelProto
    path: Path | None
    data: bytes | None
    stamp: tuple[int, int] | None = None

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that is another one by now.

        Raises
        ------
        InvalidModelError
        """
        if self.path is not None and _stamp(self.path) != self.stamp:
            raise InvalidModelError(
                f"{self.label} was changed or removed after it was prepared. Prepare it again; to be safe from that, "
                "give the model as bytes."
            )

    @property
    def label(self) -> str:
        """How messages call the model."""
        if self.path is not None:
            return f"'{self.path}'"
        return f"model {self.proto.graph.name!r}" if self.proto.graph.name else "the model"

    @property
    def source(self) -> str | bytes:
        """What `load` takes to load the same model again."""
        if self.path is not None:
            return str(self.path)
        assert self.data is not None
        return self.data


def load(model: ModelLike) -> LoadedModel:
    """Load a model from a path, bytes or a ModelProto.

    Raises
    ------
    InvalidModelError
        The file is missing, a directory, empty, truncated, or holds no ONNX model; external data is missing or lies
        outside the model's folder.
    """
    if isinstance(model, ModelProto):
        try:
            data = model.SerializeToString()
        except (EncodeError, ValueError) as error:  # above 2 GiB
            raise InvalidModelError(
                f"The ModelProto cannot be serialized ({error}). Save it with external data "
                "(onnx.save(model, path, save_as_external_data=True)) and pass the path."
            ) from error
        loaded = LoadedModel(model, None, data)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        loaded = LoadedModel(_parse(data, "the model's bytes"), None, data)
    elif isinstance(model, (str, os.PathLike)):
        path = Path(os.fsdecode(model)).absolute()
        stamp = _stamp(path)
        loaded = LoadedModel(_parse(_read(path), f"'{path}'"), path, None, stamp)
    else:
        raise InvalidModelError(
            f"A model is a path, bytes or an onnx.ModelProto; {type(model).__name__} was given. "
            "Pass one of the three, for example prepare('model.onnx')."
        )
    check_external_data(loaded.proto, path=loaded.path, label=loaded.label)
    return loaded


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # reading the file tells what is wrong
        return None
    return status.st_size, status.st_mtime_ns


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidModelError(f"There is no file '{path}'. Check the path of the model.") from None
    except IsADirectoryError:
        raise InvalidModelError(f"'{path}' is a directory. Pass the .onnx file inside it.") from None
    except OSError as error:
        raise InvalidModelError(f"'{path}' cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a null byte in the path
        raise InvalidModelError(f"{str(path)!r} cannot be read: {error}.") from error


def _parse(data: bytes, where: str) -> ModelProto:
    if not data:
        raise InvalidModelError(f"{where} is empty: 0 bytes. Export or download the model again.")
    proto = ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise InvalidModelError(
            f"{where} is no ONNX model, or is truncated: protobuf cannot read its {len(data)} bytes ({error}). "
            "Export or download the model again."
        ) from error
    if not proto.HasField("graph") or not proto.opset_import:
        lacks = "a graph" if not proto.HasField("graph") else "an opset_import"
        raise InvalidModelError(f"{where} is no complete ONNX model: it lacks {lacks}. Export the model again.")
    return proto
