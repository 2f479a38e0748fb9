# SPDX-License-Identifier: Apache-2.0
"""Loading a model from whatever the user has: a path, bytes or a ModelProto."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models import own_file
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.external_data import check_external_data, read_what_tells, with_values
from onnx_multi_backend.models.given import Given, ModelLike, given, label_of
from onnx_multi_backend.models.graph_walk import defaults_of
from onnx_multi_backend.models.node_order import in_order
from onnx_multi_backend.models.origin import Origin, stamp_of
from onnx_multi_backend.models.ort_format import is_ort_format, to_onnx
from onnx_multi_backend.models.stamp import Stamp

#: Weights in other files that take no more bytes than these, all together, are read.
_FEW = 16 << 20


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
    skeleton : bytes or None
        The encoded model as ONNX's checker reads it, where that was made when the file was read.
    label : str
        How messages call the model.
    origin : Origin
    source : str or bytes
        What `load` takes to load the same model again.
    defaults : frozenset of str
        Names of the inputs that have a default.
    mapped : bool
        Whether engines map files of its weights into memory, instead of getting the weights with the model. Few weights are read:
        what happens to their files afterwards does not matter then.
    """

    proto: ModelProto
    path: Path | None
    data: bytes | None
    stamp: Stamp | None = None
    beside: tuple[tuple[Path, Stamp | None], ...] = ()
    reordered: bool = False
    skeleton: bytes | None = field(default=None, repr=False)
    label: str = field(init=False)
    origin: Origin = field(init=False)
    source: str | bytes = field(init=False, repr=False)
    defaults: frozenset[str] = field(init=False, repr=False)
    mapped: bool = field(init=False)

    def __post_init__(self) -> None:
        label = label_of(self.path, self.proto.graph.name)
        own = {
            "label": label,
            "origin": Origin(label, self.path, self.stamp, self.beside, self.reordered),
            "source": str(self.path) if self.path is not None else self.data,
            "defaults": defaults_of(self.proto.graph),
            "mapped": sum(stamp.size if stamp is not None else 0 for _, stamp in self.beside) > _FEW,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @functools.cached_property
    def contents(self) -> Contents:
        """The model's nodes and tensors."""
        return Contents(self.proto)

    @property
    def external_files(self) -> list[str]:
        """The other files that tensors lie in, relative to the model's folder."""
        return (
            sorted(str(file.relative_to(self.path.parent)) for file, _ in self.beside) if self.path is not None else []
        )

    @property
    def is_plain(self) -> bool:
        """Whether the main graph is all there is: no subgraphs, no local functions."""
        return not self.proto.functions and len(self.contents.nodes) == len(self.proto.graph.node)

    def in_order(self) -> LoadedModel:
        """The same with each node behind those whose outputs it reads, as ONNX asks."""
        return replace(self, proto=in_order(self.proto), reordered=True, skeleton=None)

    def linked(self) -> LoadedModel:
        """The same once an engine was given links to its weights; see `Origin.linked`."""
        return replace(self, beside=self.origin.linked().beside)

    def whole(self, proto: ModelProto | None = None, *, own: bool = True) -> ModelProto:
        """The model, or one made from it, with all weights that lie in the model's own file, and the few of other files.

        Parameters
        ----------
        proto : onnx.ModelProto, optional
            The one that was made from it.
        own : bool, optional
            False leaves the weights in the model's own file.

        Raises
        ------
        InvalidModelError
            The file was changed meanwhile.
        """
        proto = self.proto if proto is None else proto
        whole = own_file.with_weights(proto, self.path) if own else proto
        if self.path is not None and self.beside and not self.mapped:
            whole = with_values(whole, self.path.parent, copied=whole is not proto, but=None if own else self.path)
        if whole is not proto:
            self.origin.check_unchanged()
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
        self.origin.check_unchanged()
        return made


def changed(loaded: LoadedModel, proto: ModelProto) -> LoadedModel:
    """A model made from another one; it needs no file any more."""
    return LoadedModel(proto, None, proto.SerializeToString())


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
        stamp = stamp_of(seen.path)
        small, data = _read(seen.path, stamp)
        if is_ort_format(data):
            return load(to_onnx(data, f"'{seen.path}'"))
        skeleton = small.skeleton if small is not None else None
        loaded = LoadedModel(_parse(data, f"'{seen.path}'"), seen.path, None, stamp, skeleton=skeleton)
    else:
        assert seen.data is not None
        if seen.proto is None and is_ort_format(seen.data):
            return load(to_onnx(seen.data, "the model"))
        proto = seen.proto if seen.proto is not None else _parse(seen.data, "the model's bytes")
        loaded = LoadedModel(proto, None, seen.data)
    files = check_external_data(loaded.contents.tensors, path=loaded.path, label=loaded.label)
    if not files:
        return loaded
    assert loaded.path is not None  # without it no file is found
    beside = tuple((file, stamp_of(file)) for file in files)
    try:
        read_what_tells(loaded.contents.tensors, loaded.path)
    except OSError as error:
        raise InvalidModelError(
            f"{loaded.label}: its external data '{error.filename}' cannot be read: {error.strerror}."
        ) from error
    return replace(loaded, beside=beside)


def _read(path: Path, stamp: Stamp | None) -> tuple[own_file.WithoutWeights | None, bytes]:
    """The encoded model, without its large weights where it has any."""
    try:
        small = own_file.without_weights(path, stamp.size) if stamp is not None else None
        return small, small.model if small is not None else path.read_bytes()
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
