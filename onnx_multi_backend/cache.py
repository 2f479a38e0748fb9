# SPDX-License-Identifier: Apache-2.0
"""Where engines may keep what they compiled."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from onnx_multi_backend.graph_walk import all_tensors
from onnx_multi_backend.model import LoadedModel
from onnx_multi_backend.own_file import is_in

VARIABLE = "ONNX_MULTI_BACKEND_CACHE_DIR"


def user_cache_dir() -> Path:
    """The user's cache folder for this package, by the platform's custom."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "onnx_multi_backend"


def resolve(cache_dir: str | bool | None, *, slow_builds: bool) -> Path | None:
    """The folder for a preset's ``cache_dir`` option; None: nothing is kept.

    Parameters
    ----------
    cache_dir : str, False or None
    slow_builds : bool
        The preset's builds take minutes, so that it keeps them even when nobody asked.
    """
    if cache_dir is False:
        return None
    if isinstance(cache_dir, str):
        return Path(cache_dir).absolute()
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    return user_cache_dir() if slow_builds else None


def key(loaded: LoadedModel, *parts: object) -> str:
    """A name for a cache entry that no other model, version or option shares.

    External data counts by name, size and time of change.
    """
    digest = hashlib.sha256(loaded.data if loaded.data is not None else loaded.whole().SerializeToString())
    if loaded.path is not None:
        for tensor in all_tensors(loaded.proto):
            for entry in tensor.external_data:
                if entry.key == "location" and not is_in(loaded.path, tensor):
                    status = (loaded.path.parent / entry.value).stat()
                    digest.update(f"{entry.value}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    for part in parts:
        digest.update(f"{part!r}\n".encode())
    return digest.hexdigest()[:32]
