# SPDX-License-Identifier: Apache-2.0
"""A process that uses a cache for a while, and holds everything it gets to what it should be."""

from __future__ import annotations

import random
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from backend_test.unit.cache.conftest import content, key_of
from onnx_multi_backend.cache import Store

NAMES = [f"entry {i}" for i in range(6)]
SIZE = 200_000


def work(root: Path, limit: int, seconds: float, to_parent: Connection) -> None:
    """Tell how many entries were made and found, or what went wrong."""
    warnings.simplefilter("error")  # a damaged entry would be warned of
    store, made, found = Store(root, limit), 0, 0
    to_parent.send("ready")
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            name = random.choice(NAMES)
            entry = store.read("ort", key_of(name))
            if entry is not None:
                assert entry.facts == {"name": name}
                assert bytes(entry.files["model"]) == content(name, SIZE)
                assert bytes(entry.files["weights"]) == content(name + "w", SIZE)
                found += 1
                continue
            with store.draft("ort", key_of(name)) as draft:
                assert draft.folder is not None
                (draft.folder / "model").write_bytes(content(name, SIZE))
                (draft.folder / "weights").write_bytes(content(name + "w", SIZE))
                draft.keep({"name": name}, {})
            made += 1
    except (Exception, Warning) as error:
        to_parent.send(repr(error))
        raise
    to_parent.send((made, found))
