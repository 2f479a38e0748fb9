# SPDX-License-Identifier: Apache-2.0
"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from onnx_multi_backend.errors import OptionError


def write(path: Path, content: bytes) -> None:
    """Write a file.

    The content goes into a file beside it first, so that a reader never meets half of it, and a write that fails or is interrupted
    leaves what was there.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    # Not from `tempfile`, whose files nobody but their owner may read: these are published.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save(path: Path, content: bytes) -> None:
    """Write a file that the user asked for.

    Raises
    ------
    OptionError
        It cannot be written.
    """
    try:
        write(path, content)
    except OSError as error:
        raise OptionError(f"'{path}' cannot be written: {error.strerror}.") from error
