# SPDX-License-Identifier: Apache-2.0
"""An entry on its way into a cache."""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from onnx_multi_backend.cache import upkeep
from onnx_multi_backend.cache.entry import write_manifest

logger = logging.getLogger("onnx_multi_backend")


class Draft:
    """A folder to write files into, which becomes an entry if it is kept. Use it in a ``with`` statement.

    Parameters
    ----------
    root : Path
        Of the cache.
    kind, key : str
        Which entry it is to be.
    limit : int
        Bytes that it may have.
    on_error : callable
        Told when the file system refuses something.

    Attributes
    ----------
    folder : Path or None
        None when nothing can be written.
    """

    def __init__(self, root: Path, kind: str, key: str, limit: int, on_error: Callable[[OSError], None]) -> None:
        self._root = root
        self._place = root / kind / key
        self._limit = limit
        self._on_error = on_error
        self.folder: Path | None = None

    def __enter__(self) -> Draft:
        folder = upkeep.partial_name(self._place)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except OSError as error:
            self._on_error(error)
        else:
            self.folder = folder
        return self

    def keep(self, facts: Mapping[str, Any], about: Mapping[str, str], *, kept_by_engine: bool = False) -> None:
        """Put the entry in its place, if it is not too large and another process was not first.

        Parameters
        ----------
        facts : mapping of str to JSON value
        about : mapping of str to str
        kept_by_engine : bool
            An engine will write into the folder.
        """
        if self.folder is None:
            return
        try:
            write_manifest(self.folder, facts, about, kept_by_engine=kept_by_engine)
            size = upkeep.size_of(self.folder)
            if size > self._limit:
                logger.info("%d bytes are more than the whole cache may have: '%s' is not kept", size, self._place)
            elif not self._place.is_dir():
                self.folder.rename(self._place)
                self.folder = None
                upkeep.entry_added(self._root, self._limit, size)
        except OSError as error:
            # Another process was first, even where its entry has been evicted since.
            taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST) or self._place.is_dir()
            if not taken:
                self._on_error(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
