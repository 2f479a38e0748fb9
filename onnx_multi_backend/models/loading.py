# SPDX-License-Identifier: Apache-2.0
"""Loading a model from whatever the user has: a path, bytes or a ModelProto."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Union

from google.protobuf.message import DecodeError, EncodeError
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models import own_file
from onnx_multi_backend.models.external_data import check_external_data, external_files, with_values
from onnx_multi_backend.models.graph_walk import defaults_of
from onnx_multi_backend.models.node_order import in_order
from onnx_multi_backend.models.ort_format import is_ort_format, to_onnx
from onnx_multi_backend.models.stamp import Stamp

#: Weights in other files that take no more bytes than these, all together, are read.
_FEW = 16 << 20

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


@dataclass(frozen=True)
class LoadedModel:
    """A model as it was given.

    Attributes
    ----------
    proto : onnx.ModelProto
        The model. What lies in another file is not loaded; neither are large initializers in the model's own file,
        which stand there as external data: see `own_file`.
    path : Path or None
        The file, when the model was given as one.
    data : bytes or None
        The serialized model, when it was given as bytes or as a ModelProto.
    stamp : Stamp or None
        What the file system said of the file.
    beside : tuple of (Path, Stamp or None)
        Other files that some of its tensors lie in, with their stamps.
    reordered : bool
        Whether nodes stood before those whose outputs they read: see `in_order`.
    """

    proto: ModelProto
    path: Path | None
    data: bytes | None
    stamp: Stamp | None = None
    beside: tuple[tuple[Path, Stamp | None], ...] = ()
    reordered: bool = False

    @property
    def external(self) -> bool:
        """Whether some of its tensors lie in other files."""
        return bool(self.beside)

    @property
    def mapped(self) -> bool:
        """Whether engines map files of its weights into memory, instead of getting the weights with the model.

        Few weights are read: what happens to their files afterwards does not matter then.
        """
        return sum(stamp.size if stamp is not None else 0 for _, stamp in self.beside) > _FEW

    @property
    def external_files(self) -> list[str]:
        """The other files that tensors lie in, relative to the model's folder."""
        return external_files(self.proto, self.path) if self.external else []

    @property
    def defaults(self) -> frozenset[str]:
        """Names of the inputs that have a default."""
        return defaults_of(self.proto.graph)

    def in_order(self) -> LoadedModel:
        """The same with each node behind those whose outputs it reads, as ONNX asks."""
        return replace(self, proto=in_order(self.proto), reordered=True)

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
        for file, stamp in self.beside:
            if _stamp(file) != stamp:
                raise InvalidModelError(
                    f"{self.label}: '{file}', which holds weights of it, was changed or removed after the model was "
                    "prepared. Prepare it again."
                )

    def linked(self) -> LoadedModel:
        """The same once an engine was given links to its weights: a link moves the time of a file's last change.

        Only that one: a file of another size or time of writing is still another file.
        """
        fresh = tuple((file, _stamp(file)) for file, _ in self.beside)
        kept = tuple(
            (file, now if now is not None and then is not None and now[:2] == then[:2] else then)
            for (file, now), (_, then) in zip(fresh, self.beside, strict=True)
        )
        return replace(self, beside=kept)

    @property
    def label(self) -> str:
        """How messages call the model."""
        return label_of(self.path, self.proto.graph.name)

    def whole(self, proto: ModelProto | None = None) -> ModelProto:
        """The model, or one made from it, with all weights that lie in the model's own file, and the few of other files.

        Raises
        ------
        InvalidModelError
            The file was changed meanwhile.
        """
        proto = self.proto if proto is None else proto
        whole = own_file.with_weights(proto, self.path)
        if self.path is not None and self.beside and not self.mapped:
            whole = with_values(whole, self.path.parent, copied=whole is not proto)
        if whole is not proto:
            self.check_unchanged()
        return whole

    def with_all_weights(self) -> ModelProto:
        """The model with all its weights, however many lie in other files.

        Raises
        ------
        InvalidModelError
            A file was changed meanwhile.
        """
        whole = self.whole()
        if self.path is None:
            return whole
        made = with_values(whole, self.path.parent, copied=whole is not self.proto)
        self.check_unchanged()
        return made

    @property
    def source(self) -> str | bytes:
        """What `load` takes to load the same model again."""
        return Given(self.path, self.data).source


def changed(loaded: LoadedModel, proto: ModelProto) -> LoadedModel:
    """A model made from another one; it needs no file any more."""
    return LoadedModel(proto, None, proto.SerializeToString())


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
        It is none of the three, or a ModelProto too large to be serialized.
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
        return Given(Path(os.fsdecode(model)).absolute(), None)
    if isinstance(held := getattr(model, "model", None), ModelProto):  # a QuantizedModel
        return given(held)
    raise InvalidModelError(
        f"A model is a path, bytes or an onnx.ModelProto; {type(model).__name__} was given. "
        "Pass one of the three, for example prepare('model.onnx')."
    )


def load(model: ModelLike | Given) -> LoadedModel:
    """Load a model from a path, bytes or a ModelProto; one in ONNX Runtime's own format becomes ONNX.

    Raises
    ------
    UnsupportedModelError
        The model is in ONNX Runtime's own format, and that is not installed.
    InvalidModelError
        The file is missing, a directory, empty, truncated, or holds no ONNX model; external data is missing or lies
        outside the model's folder.
    """
    seen = model if isinstance(model, Given) else given(model)
    if seen.path is not None:
        stamp = _stamp(seen.path)
        data = _read(seen.path, stamp)
        if is_ort_format(data):
            return load(to_onnx(data, f"'{seen.path}'"))
        loaded = LoadedModel(_parse(data, f"'{seen.path}'"), seen.path, None, stamp)
    else:
        assert seen.data is not None
        if seen.proto is None and is_ort_format(seen.data):
            return load(to_onnx(seen.data, "the model"))
        proto = seen.proto if seen.proto is not None else _parse(seen.data, "the model's bytes")
        loaded = LoadedModel(proto, None, seen.data)
    files = check_external_data(loaded.proto, path=loaded.path, label=loaded.label)
    return replace(loaded, beside=tuple((file, _stamp(file)) for file in files)) if files else loaded


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path)
    except (OSError, ValueError):  # reading the file tells what is wrong
        return None


def _read(path: Path, stamp: Stamp | None) -> bytes:
    try:
        small = own_file.without_weights(path, stamp.size) if stamp is not None else None
        return small if small is not None else path.read_bytes()
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
            f"{where} is not an ONNX model, or is truncated: protobuf cannot read its {len(data)} bytes ({error}). "
            "Export or download the model again."
        ) from error
    if not proto.HasField("graph") or not proto.opset_import:
        lacks = "a graph" if not proto.HasField("graph") else "an opset_import"
        raise InvalidModelError(f"{where} is not a complete ONNX model: it lacks {lacks}. Export the model again.")
    return proto
