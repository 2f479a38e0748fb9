# SPDX-License-Identifier: Apache-2.0
"""Text files, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from onnx_multi_backend import whole_file


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8 without translating newlines; folders that are missing are made.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate, as in an undecodable path, must not cost the file.
    whole_file.write(path, text.encode("utf-8", "backslashreplace"))
