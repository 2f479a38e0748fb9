# SPDX-License-Identifier: Apache-2.0
"""What lies in a cache's folder, and how it goes: the least recently used first, or all of it.

Only what this package wrote is ever removed: folders named like entries in the folders of `kinds.KINDS`, and records of
fingerprints.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from onnx_multi_backend.cache import fingerprint, kinds
from onnx_multi_backend.cache.entry import MANIFEST

logger = logging.getLogger("onnx_multi_backend")

#: An entry that is still on its way after this many seconds was left by a process that died.
_ABANDONED = 3600.0

#: So many fingerprints are remembered.
_FINGERPRINTS = 1000

#: Other processes add entries too; after so many of our own the folder is looked through again.
_LOOK_AFTER = 100

#: For each cache of this process, how many bytes it had when it was looked through, with those added since, and how
#: many entries were added. Two threads that count at once cost a look too many or too late, no more.
_seen: dict[Path, tuple[int, int]] = {}


class Kept(NamedTuple):
    """An entry as it lies in the folder; it may be damaged.

    Attributes
    ----------
    kind : str
    folder : Path
    size : int
        Bytes of its files.
    used : float
        When it was used last, in seconds of `time.time`.
    """

    kind: str
    folder: Path
    size: int
    used: float


def entries(root: Path) -> Iterator[Kept]:
    """All entries of a cache."""
    for kind in kinds.KINDS:
        for folder in _items(root / kind, folders=True):
            if kinds.is_entry(folder.name):
                manifest = folder / MANIFEST
                yield Kept(kind, folder, size_of(folder), _time(manifest if manifest.exists() else folder))


def entry_added(root: Path, limit: int, size: int) -> None:
    """Evict where an entry of this size made it necessary. The folder is looked through now and then, not every time."""
    known, added = _seen.get(root, (0, _LOOK_AFTER))
    known, added = known + size, added + 1
    if known > limit or added >= _LOOK_AFTER:
        known, added = evict(root, limit), 0
    _seen[root] = known, added


def evict(root: Path, limit: int) -> int:
    """Remove the entries that were not used for longest, until the rest is within the limit.

    Returns
    -------
    int
        Bytes of the rest.
    """
    found = sorted(entries(root), key=lambda entry: entry.used)
    total = sum(entry.size for entry in found)
    for entry in found:
        if total <= limit:
            break
        if remove(entry.folder):
            logger.info("the cache '%s' is full: '%s' was used longest ago and is gone", root, entry.folder)
            total -= entry.size
    _sweep(root, time.time() - _ABANDONED)
    records = sorted(_items(root / fingerprint.FOLDER, folders=False), key=_time)
    _unlink(records[:-_FINGERPRINTS])
    return total


def clear(root: Path) -> list[Kept]:
    """Remove every entry, and return which they were."""
    removed = [entry for entry in entries(root) if remove(entry.folder)]
    _sweep(root, time.time())
    _unlink(_items(root / fingerprint.FOLDER, folders=False))
    for name in (*kinds.KINDS, fingerprint.FOLDER):
        with contextlib.suppress(OSError):  # it is not there, or something else lies in it
            (root / name).rmdir()
    return removed


def remove(folder: Path) -> bool:
    """Take an entry out of sight at once, then delete it. On Windows one that is in use stays."""
    gone = partial_name(folder)
    try:
        folder.rename(gone)
    except OSError as error:
        logger.debug("'%s' stays in the cache: %s", folder, error)
        return False
    shutil.rmtree(gone, ignore_errors=True)
    return True


def partial_name(folder: Path) -> Path:
    """Where an entry is on its way in or out: beside its place, under a name that no other process takes."""
    return folder.with_name(f".partial-{secrets.token_hex(8)}")


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(where, name)).st_size
    return size


def _sweep(root: Path, before: float) -> None:
    """Delete what processes that died left behind."""
    for kind in kinds.KINDS:
        for folder in _items(root / kind, folders=True):
            if kinds.is_partial(folder.name) and _time(folder) <= before:
                shutil.rmtree(folder, ignore_errors=True)
    _unlink(
        file
        for file in _items(root / fingerprint.FOLDER, folders=False)
        if _time(file) <= before and file.suffix == ".partial"
    )


def _unlink(files: Iterator[Path] | list[Path]) -> None:
    for file in files:
        if file.suffix in (".json", ".partial"):
            with contextlib.suppress(OSError):
                file.unlink()


def _items(folder: Path, *, folders: bool) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            return [Path(i) for i in items if (i.is_dir if folders else i.is_file)(follow_symlinks=False)]
    except OSError:
        return []


def _time(item: Path) -> float:
    try:
        return item.stat().st_mtime
    except OSError:
        return 0.0
