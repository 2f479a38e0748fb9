# SPDX-License-Identifier: Apache-2.0
"""Processes that use a cache for a while, and hold everything they get to what it should be."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import onnx_multi_backend as omb
from backend_test.unit.cache.conftest import X, content, key_of
from onnx_multi_backend.cache.store import Store

NAMES = [f"entry {i}" for i in range(6)]
SIZE = 200_000


def entries(root: Path, limit: int, seconds: float) -> Iterator[bool]:
    """Look for entries at random, and make those that are not there; yields whether one was found."""
    store, until = Store(root, limit), time.monotonic() + seconds
    yield True
    while time.monotonic() < until:
        name = random.choice(NAMES)
        entry = store.read("ort", key_of(name))
        if entry is not None:
            assert entry.facts == {"name": name}
            assert bytes(entry.files["model"]) == content(name, SIZE)
            assert bytes(entry.files["weights"]) == content(name + "w", SIZE)
        else:
            with store.draft("ort", key_of(name)) as draft:
                assert draft.folder is not None
                (draft.folder / "model").write_bytes(content(name, SIZE))
                (draft.folder / "weights").write_bytes(content(name + "w", SIZE))
                draft.keep({"name": name}, {})
        yield entry is not None


def models(preset: str, models: list[Path], cache: Path, times: int) -> Iterator[bool]:
    """Prepare models so often; yields whether the cache had it."""
    expected = {m: omb.prepare(m, preset=preset, cache_dir=False).run(X)[0].tobytes() for m in models}
    yield True
    for _ in range(times):
        model = random.choice(models)
        made: Any = omb.prepare(model, preset=preset, cache_dir=str(cache))
        assert made.run(X)[0].tobytes() == expected[model]
        yield made._sessions.make._cold is None


def work(to_parent: Connection, kind: str, *given: Any) -> None:
    """Tell when it is ready, and at last how many entries were made and found."""
    warnings.simplefilter("error")  # a damaged entry would be warned of
    steps = {"entries": entries, "models": models}[kind](*given)
    next(steps)
    to_parent.send("ready")
    found = list(steps)
    to_parent.send((found.count(False), found.count(True)))
