# SPDX-License-Identifier: Apache-2.0
"""What identifies a model."""

from __future__ import annotations

from pathlib import Path

import xxhash

from onnx_multi_backend.models.given import ModelLike, given
from onnx_multi_backend.models.loading import LoadedModel

_CHUNK = 1 << 22


def digest_of(model: ModelLike, loaded: LoadedModel) -> str:
    """A hexadecimal number made of the model's bytes and those of its weights in other files."""
    made = xxhash.xxh3_128()
    source = given(model).source
    if isinstance(source, bytes):
        made.update(source)
        return made.hexdigest()
    path = Path(source)
    for file in (path, *(path.parent / name for name in loaded.external_files)):
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                made.update(chunk)
    return made.hexdigest()
