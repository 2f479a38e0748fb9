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
from dataclasses import dataclass
from pathlib import Path

import xxhash

from onnx_multi_backend.cache import sealed
from onnx_multi_backend.cache.stamp import Stamp

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
        """Whether the file has the same content now; it is read only when the stamp cannot tell."""
        try:
            if Stamp.of(self.file) != self.stamp:
                return False
            return self.settled or hash_file(self.file) == self.digest
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


def fingerprint_files(
    file: Path, root: Path, external: Sequence[str] | None = None, *, on_error: Callable[[OSError], None]
) -> Fingerprint | None:
    """The fingerprint of a model in files.

    Parameters
    ----------
    file : Path
        The model's, absolute.
    root : Path
        The cache's folder, for what is remembered.
    external : sequence of str, optional
        The files of the model's external data, relative to the model's folder; without it they have to be remembered.
    on_error : callable
        Told when nothing can be remembered in `root`.

    Returns
    -------
    Fingerprint or None
        None when `external` is neither given nor remembered.

    Raises
    ------
    OSError
        A file cannot be read.
    """
    model = _hashed(file, root, None if external is None else tuple(sorted(set(external))), on_error)
    if model.external is None:
        return None
    others = [_hashed(file.parent / location, root, None, on_error) for location in model.external]
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


def _hashed(
    file: Path, root: Path, external: tuple[str, ...] | None, on_error: Callable[[OSError], None]
) -> HashedFile:
    """The file by its hash, which is remembered if it can be; with what is known of its external data."""
    record = root / FOLDER / f"{xxhash.xxh3_128_hexdigest(str(file).encode('utf-8', 'surrogateescape'))}.json"
    stamp = Stamp.of(file)
    settled = stamp.is_settled()  # asked before the file is read: what is written while it is read must show
    known = _remembered(record, file)
    if known is not None and known.stamp == stamp:
        digest = known.digest
    else:
        digest = hash_file(file)
        settled = settled and Stamp.of(file) == stamp
    if external is None and known is not None and known.digest == digest:
        external = known.external
    hashed = HashedFile(file, stamp, digest, settled, external)
    if settled and hashed != known:
        try:
            record.parent.mkdir(parents=True, exist_ok=True)
            sealed.write(record, {"file": str(file), "stamp": stamp, "digest": digest, "external": external})
        except OSError as error:
            on_error(error)
    return hashed


def _remembered(record: Path, file: Path) -> HashedFile | None:
    with contextlib.suppress(OSError, sealed.BrokenSealError):
        content = sealed.read(record)
        if content["file"] == str(file):
            names = content["external"]
            external = None if names is None else tuple(names)
            return HashedFile(file, Stamp(*content["stamp"]), content["digest"], settled=True, external=external)
    return None
