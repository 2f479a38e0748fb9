# SPDX-License-Identifier: Apache-2.0
"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8 without translating newlines; folders that are missing are made.

    The text goes into a file beside it first, so that a reader never meets half of it, and a write that fails leaves
    what was there.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not from `tempfile`, whose files nobody but their owner may read: these are published.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # A lone surrogate, as in an undecodable path, must not cost the file.
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
