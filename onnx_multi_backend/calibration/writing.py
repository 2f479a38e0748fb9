# SPDX-License-Identifier: Apache-2.0
"""The files that a user asks for."""

from __future__ import annotations

from pathlib import Path

from onnx_multi_backend import whole_file
from onnx_multi_backend.errors import OptionError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; it is there whole or not at all.

    Raises
    ------
    OptionError
        It cannot be written.
    """
    try:
        whole_file.write(path, content)
    except OSError as error:
        raise OptionError(f"'{path}' cannot be written: {error.strerror}.") from error
