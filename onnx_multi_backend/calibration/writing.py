# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from onnx_multi_backend.errors import OptionError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, and put it there when it is complete: Ctrl-C leaves no half of it.

    Raises
    ------
    OptionError
        The folder is missing, or not to be written to.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise OptionError(f"'{path}' cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        raise OptionError(f"'{path}' cannot be written: {error.strerror}.") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
