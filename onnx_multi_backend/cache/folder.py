# SPDX-License-Identifier: Apache-2.0
"""Where entries are kept, and how much of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from onnx_multi_backend.errors import OptionError

FOLDER_VARIABLE = "ONNX_MULTI_BACKEND_CACHE_DIR"
SIZE_VARIABLE = "ONNX_MULTI_BACKEND_CACHE_SIZE"

DEFAULT_SIZE = 4 << 30

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}


def user_cache_dir() -> Path:
    """The user's cache folder for this package, by the platform's custom."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("onnx_multi_backend", appauthor=False))


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
        return Path(os.path.expanduser(cache_dir)).absolute()
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(os.path.expanduser(named)).absolute()
    return user_cache_dir() if slow_builds else None


def size_limit() -> int:
    """How many bytes the entries of one folder may have: ``ONNX_MULTI_BACKEND_CACHE_SIZE``, or 4 GiB.

    Raises
    ------
    OptionError
        The variable holds no size.
    """
    given = os.environ.get(SIZE_VARIABLE, "").strip()
    if not given:
        return DEFAULT_SIZE
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", given.lower())
    if parts is None:
        raise OptionError(
            f"{SIZE_VARIABLE} is a size such as 500MB or 4GiB, or a number of bytes; {given!r} was given."
        )
    return int(float(parts[1]) * _UNITS[parts[2]])
