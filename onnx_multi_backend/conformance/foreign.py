# SPDX-License-Identifier: Apache-2.0
"""What foreign code says: exceptions put into words, texts that can be written down, its own name and version."""

from __future__ import annotations

import sys
from typing import Any

from onnx_multi_backend.host.versions import versions_of

#: The characters of a text that are kept: of a longer one the first and the last.
_FIRST, _LAST = 8_000, 2_000


def message_of(error: BaseException) -> str:
    """Return what an exception says, as `sound` has it, also where it cannot say it."""
    try:
        return sound(str(error))
    except Exception as fault:  # a foreign exception's own __str__
        return f"(its message cannot be read: {type(fault).__name__})"


def describe_error(error: BaseException) -> str:
    """Return ``Type: message``."""
    return f"{type(error).__name__}: {message_of(error)}"


def sound(text: str) -> str:
    """Return a text of a length that a report can hold, its first line included, and without lone surrogates.

    No encoding has a form for these: neither a file nor pytest-xdist takes them.
    """
    if len(text) > _FIRST + _LAST:
        text = text.strip()
        left_out = len(text) - _FIRST - _LAST
        if left_out > 0:
            text = f"{text[:_FIRST]}\n[{left_out:,} characters are left out]\n{text[-_LAST:]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def versions_told(backend: Any, path: str) -> dict[str, str]:
    """Return the name and the version that a backend says it has; empty where it does not, or its package says more.

    Parameters
    ----------
    backend : type or module
        May have the texts ``name``, and ``version`` or ``__version__``; the version may also be its module's.
    path : str
        Its dotted path, the first word of which is its name where it tells none.
    """
    places = [backend, sys.modules.get(getattr(backend, "__module__", ""))]
    versions = (_text(place, word) for place in places for word in ("version", "__version__"))
    name, version, package = _text(backend, "name"), next(filter(None, versions), ""), path.split(".")[0]
    if version:
        return {name or package: version}
    return {name: ""} if name and not versions_of(package) else {}


def _text(place: Any, word: str) -> str:
    found = getattr(place, word, "")
    return sound(found).strip() if isinstance(found, str) else ""
