# SPDX-License-Identifier: Apache-2.0
"""Which model it is: a hash of its content, its external data included.

The hash is xxh3: fast, and no defence against someone who makes two models of one hash on purpose. Hashes of files are
remembered in the cache, by path and `Stamp`, together with the names of the files that hold a model's external data; so
a model that was seen before is known without being read.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import xxhash

from onnx_multi_backend.cache import sealed
from onnx_multi_backend.models.stamp import Stamp

#: The folder of what is remembered, below the cache's.
FOLDER = "fingerprints"


@dataclass(frozen=True)
class HashedFile:
    """A file's content by its hash.

    Attributes
    ----------
    file : Path
    stamp : Stamp
        From before it was read.
    digest : str
    settled : bool
        Whether the stamp alone can prove, later, that the file is still the same.
    external : tuple of str or None
        For a model: the files of its external data, relative to its folder. None: not known.
    """

    file: Path
    stamp: Stamp
    digest: str
    settled: bool
    external: tuple[str, ...] | None = None

    def still_holds(self) -> bool:
        """Whether the file has the same content now; it is read only when the stamp cannot tell.

        A link to the file changes the stamp, and not the content.
        """
        try:
            return (self.settled and Stamp.of(self.file) == self.stamp) or hash_file(self.file) == self.digest
        except OSError:
            return False


@dataclass(frozen=True)
class Fingerprint:
    """The identity of a model's content.

    Attributes
    ----------
    text : str
    files : tuple of HashedFile
        What it was made of; empty for a model in memory.
    """

    text: str
    files: tuple[HashedFile, ...] = ()

    def still_holds(self) -> bool:
        """Whether the files have the same content now."""
        return all(file.still_holds() for file in self.files)


def fingerprint_bytes(data: bytes) -> Fingerprint:
    """The fingerprint of a serialized model that has no external data."""
    return Fingerprint(xxhash.xxh3_128_hexdigest(data))


def hash_model(file: Path, root: Path, *, on_error: Callable[[OSError], None]) -> HashedFile:
    """The hash of a model's own file, and the files of its external data if they are remembered.

    Parameters
    ----------
    file : Path
        Absolute.
    root : Path
        The cache's folder, for what is remembered.
    on_error : callable
        Told when nothing can be remembered in `root`.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    return _hashed(file, root, on_error)


def fingerprint_files(
    model: HashedFile, root: Path, external: Sequence[str] | None = None, *, on_error: Callable[[OSError], None]
) -> Fingerprint:
    """The fingerprint of a model in files.

    Parameters
    ----------
    model : HashedFile
        From `hash_model`.
    external : sequence of str, optional
        The files of the model's external data, relative to the model's folder; what is remembered when None.
    root, on_error
        As for `hash_model`.

    Raises
    ------
    OSError
        A file cannot be read.
    """
    if external is not None:
        model = replace(model, external=tuple(sorted(set(external))))
        _remember(model, _remembered(model.file, root), root, on_error)
    assert model.external is not None
    others = [_hashed(model.file.parent / location, root, on_error) for location in model.external]
    if not others:
        return Fingerprint(model.digest, (model,))
    parts = [model.digest, *(f"{name!r} {o.digest}" for name, o in zip(model.external, others, strict=True))]
    return Fingerprint(xxhash.xxh3_128_hexdigest("\n".join(parts).encode()), (model, *others))


def hash_file(file: Path) -> str:
    """The hash of a file's content. Raises OSError."""
    with file.open("rb") as stream:
        if stream.seek(0, 2) == 0:
            return xxhash.xxh3_128_hexdigest(b"")  # it cannot be mapped
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return xxhash.xxh3_128_hexdigest(data)


class _Known(NamedTuple):
    """What is remembered of a file.

    Attributes
    ----------
    stamp : Stamp or None
        None where it could not be relied on: then the file is read again.
    digest : str
    external : tuple of str or None
        As in `HashedFile`, of the content with this digest.
    """

    stamp: Stamp | None
    digest: str
    external: tuple[str, ...] | None


def _hashed(file: Path, root: Path, on_error: Callable[[OSError], None]) -> HashedFile:
    """The file by its hash, which is remembered if it can be; with what is known of its external data."""
    stamp = Stamp.of(file)
    settled = stamp.is_settled()  # asked before the file is read: what is written while it is read must show
    known = _remembered(file, root)
    if known is not None and known.stamp == stamp:
        return HashedFile(file, stamp, known.digest, True, known.external)
    digest = hash_file(file)
    external = known.external if known is not None and known.digest == digest else None
    hashed = HashedFile(file, stamp, digest, settled and Stamp.of(file) == stamp, external)
    _remember(hashed, known, root, on_error)
    return hashed


def _record(file: Path, root: Path) -> Path:
    return root / FOLDER / f"{xxhash.xxh3_128_hexdigest(str(file).encode('utf-8', 'surrogateescape'))}.json"


def _remember(hashed: HashedFile, known: _Known | None, root: Path, on_error: Callable[[OSError], None]) -> None:
    new = _Known(hashed.stamp if hashed.settled else None, hashed.digest, hashed.external)
    if new == known or (new.stamp is None and new.external is None):
        return
    record = _record(hashed.file, root)
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(record, {"file": str(hashed.file), **new._asdict()})
    except OSError as error:
        on_error(error)


def _remembered(file: Path, root: Path) -> _Known | None:
    with contextlib.suppress(OSError, sealed.BrokenSealError):
        told = sealed.read(_record(file, root))
        if told["file"] == str(file):
            stamp = None if told["stamp"] is None else Stamp(*told["stamp"])
            return _Known(stamp, told["digest"], None if told["external"] is None else tuple(told["external"]))
    return None
