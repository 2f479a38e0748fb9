# SPDX-License-Identifier: Apache-2.0
"""Small JSON files that show when they are damaged: the first line is the hash of the rest."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import xxhash

from onnx_multi_backend.cache.regular import open_regular


class BrokenSealError(Exception):
    """The content is not what was written; never leaves this package."""


def write(file: Path, content: Any) -> None:
    """Write the file whole or not at all. Raises OSError."""
    body = json.dumps(content, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")
    partial = file.with_name(f"{file.name}.{secrets.token_hex(8)}.partial")
    try:
        partial.write_bytes(xxhash.xxh3_128_hexdigest(body).encode("ascii") + b"\n" + body)
        os.replace(partial, file)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def read(file: Path) -> Any:
    """Read the file again.

    Raises
    ------
    BrokenSealError
    OSError
    """
    with open_regular(file) as stream:
        seal, _, body = stream.read().partition(b"\n")
    if xxhash.xxh3_128_hexdigest(body).encode("ascii") != seal:
        raise BrokenSealError
    return json.loads(body)
