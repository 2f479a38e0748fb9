# SPDX-License-Identifier: Apache-2.0
"""One entry: a folder with files, facts, and a manifest that both are held to."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from onnx_multi_backend.cache import sealed
from onnx_multi_backend.cache.fingerprint import hash_file
from onnx_multi_backend.cache.regular import NotRegularError, open_regular

MANIFEST = "manifest.json"


class DamagedError(Exception):
    """An entry is not what was written; never leaves this package. Its words say what is wrong."""


@dataclass(frozen=True)
class Entry:
    """What is kept under one key.

    Attributes
    ----------
    folder : Path
    facts : mapping of str to JSON value
        What is known beside the files.
    about : mapping of str to str
        For people: preset, engine, model.
    files : mapping of str to buffer
        The files' content, mapped into memory: writable, and what is written stays in this process.
    """

    folder: Path
    facts: Mapping[str, Any]
    about: Mapping[str, str]
    files: Mapping[str, mmap.mmap | bytes] = field(default_factory=dict, repr=False)

    def still_there(self) -> bool:
        """Whether its files are still where they were, for engines that read them by themselves."""
        return all((self.folder / name).is_file() for name in self.files)


def write_manifest(folder: Path, facts: Mapping[str, Any], about: Mapping[str, str], *, kept_by_engine: bool) -> None:
    """Describe what a folder holds. The files of an entry that an engine keeps change as it likes, so they are not held to it."""
    files = None
    if not kept_by_engine:
        names = sorted(item.name for item in folder.iterdir())
        files = {name: {"size": (folder / name).stat().st_size, "xxh3": hash_file(folder / name)} for name in names}
    sealed.write(folder / MANIFEST, {"files": files, "facts": facts, "about": about})


def read_entry(folder: Path) -> Entry:
    """Read an entry and hold it to its manifest, every byte of it.

    Raises
    ------
    DamagedError
        It is not what was written.
    FileNotFoundError
        It is not there, or is being removed.
    OSError
        It cannot be read.
    """
    try:
        manifest = sealed.read(folder / MANIFEST)
        files = {name: _verified(folder / name, told) for name, told in (manifest["files"] or {}).items()}
    except sealed.BrokenSealError:
        raise DamagedError("its manifest is damaged") from None
    except NotRegularError as error:
        raise DamagedError(f"{Path(error.filename).name} is not a regular file") from None
    return Entry(folder, manifest["facts"], manifest["about"], files)


def read_about(folder: Path) -> Mapping[str, str]:
    """What an entry is about; nothing where that cannot be read."""
    try:
        about: Mapping[str, str] = sealed.read(folder / MANIFEST)["about"]
    except (OSError, sealed.BrokenSealError):
        return {}
    return about


def _verified(file: Path, told: Mapping[str, Any]) -> mmap.mmap | bytes:
    with open_regular(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size != told["size"]:
            raise DamagedError(f"{file.name} has {size} bytes instead of {told['size']}")
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    if xxhash.xxh3_128_hexdigest(content) != told["xxh3"]:
        raise DamagedError(f"{file.name} has other bytes than were written")
    return content
