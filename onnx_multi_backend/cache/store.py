# SPDX-License-Identifier: Apache-2.0
"""Entries in a folder.

An entry is made in a folder of another name beside its place and then renamed, so it is there whole or not at all; it
leaves the same way. Whoever reads it verifies it. No lock is taken: of two processes that make the same entry, the
second one's is thrown away.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnx_multi_backend.cache import upkeep
from onnx_multi_backend.cache.draft import Draft
from onnx_multi_backend.cache.entry import MANIFEST, DamagedError, Entry, read_entry
from onnx_multi_backend.cache.folder import size_limit
from onnx_multi_backend.errors import CacheWarning
from onnx_multi_backend.user_warnings import warn


@dataclass(frozen=True)
class Store:
    """The entries below one folder. What the file system refuses is warned of once and costs only speed.

    Parameters
    ----------
    root : Path
    limit : int
        Bytes that all entries together may have.
    """

    root: Path
    limit: int

    @classmethod
    def at(cls, root: Path) -> Store:
        """The store in a folder, with the limit of the environment."""
        return cls(root, size_limit())

    def read(self, kind: str, key: str) -> Entry | None:
        """The entry of this key, verified; None where there is none. A damaged one is dropped, with a warning."""
        folder = self.root / kind / key
        lacking = ""
        for _ in range(3):  # another process may be just putting a new one in its place
            try:
                entry = read_entry(folder)
            except FileNotFoundError as error:
                if not folder.is_dir():
                    return None
                lacking = f"{Path(error.filename).name} is missing"
            except DamagedError as error:
                self._drop(folder, str(error))
                return None
            except OSError as error:
                self.unusable(error)
                return None
            else:
                with contextlib.suppress(OSError):  # the folder may be read-only
                    os.utime(folder / MANIFEST)
                return entry
        self._drop(folder, lacking)
        return None

    def draft(self, kind: str, key: str) -> Draft:
        """A new entry on its way, which is thrown away unless it is kept."""
        return Draft(self.root, kind, key, self.limit, self.unusable)

    def engine_folder(self, kind: str, key: str, about: Mapping[str, str]) -> Path | None:
        """The folder of an entry that an engine keeps by itself; None where it cannot be made."""
        folder = self.root / kind / key
        if self.read(kind, key) is None:
            with self.draft(kind, key) as draft:
                draft.keep({}, about, kept_by_engine=True)
        return folder if os.access(folder, os.W_OK) else None

    def remove(self, entry: Entry) -> None:
        """Take an entry away that turned out to be of no use."""
        upkeep.remove(entry.folder)

    def _drop(self, folder: Path, why: str) -> None:
        warn(f"The cache entry '{folder}' is damaged: {why}. It is dropped and made again.", CacheWarning)
        upkeep.remove(folder)

    def unusable(self, error: OSError) -> None:
        """Tell, once a process, that the folder does not serve."""
        _warn_once(self.root, error.strerror or type(error).__name__)


@functools.cache
def _warn_once(root: Path, why: str) -> None:
    warn(f"The cache in '{root}' cannot be used: {why}. Models are prepared without it.", CacheWarning)
