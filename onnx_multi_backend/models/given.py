# SPDX-License-Identifier: Apache-2.0
"""A model as the user gave it: a path, bytes or a ModelProto. Nothing is read yet."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from google.protobuf.message import EncodeError
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError

ModelLike = Union[str, "os.PathLike[str]", bytes, ModelProto]


@dataclass(frozen=True)
class Given:
    """A model as the user gave it, with nothing read yet.

    Attributes
    ----------
    path : Path or None
        The file, absolute, when the model was given as one.
    data : bytes or None
        The serialized model, when it was given as bytes or as a ModelProto.
    proto : onnx.ModelProto or None
        When it was given as one.
    """

    path: Path | None
    data: bytes | None
    proto: ModelProto | None = None

    @property
    def source(self) -> str | bytes:
        """What `load` takes to load the same model again."""
        if self.path is not None:
            return str(self.path)
        assert self.data is not None
        return self.data


def label_of(path: Path | None, graph_name: str) -> str:
    """How messages call a model: by its file, or by the name of its graph."""
    if path is not None:
        return f"'{path}'"
    return f"model {graph_name!r}" if graph_name else "the model"


def given(model: ModelLike) -> Given:
    """Look at what was given for a model.

    Raises
    ------
    InvalidModelError
        It is not one of the three, an empty path, or a ModelProto too large to be serialized.
    """
    if isinstance(model, ModelProto):
        try:
            return Given(None, model.SerializeToString(), model)
        except (EncodeError, ValueError) as error:  # above 2 GiB
            raise InvalidModelError(
                f"The ModelProto cannot be serialized ({error}). Save it with external data "
                "(onnx.save(model, path, save_as_external_data=True)) and pass the path."
            ) from error
    if isinstance(model, (bytes, bytearray, memoryview)):
        return Given(None, bytes(model))
    if isinstance(model, (str, os.PathLike)):
        if not os.fspath(model):
            raise InvalidModelError(
                "The path of the model is empty. Pass that of a file, for example prepare('model.onnx')."
            )
        return Given(Path(os.fsdecode(model)).absolute(), None)
    if isinstance(held := getattr(model, "model", None), ModelProto):  # a QuantizedModel
        return given(held)
    raise InvalidModelError(
        f"A model is a path, bytes or an onnx.ModelProto; {type(model).__name__} was given. "
        "Pass one of the three, for example prepare('model.onnx')."
    )
