# SPDX-License-Identifier: Apache-2.0
"""Processes that share a cache, one of them killed at random: none ever sees half an entry, or a wrong one.

A process has one fork server, and what that has loaded cannot be changed: the conformance runner, tested in this same
process, wants another one. So each of these tests runs in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import random
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit.cache.conftest import content, key_of, large
from backend_test.unit.cache.worker import NAMES, SIZE, work
from onnx_multi_backend.cache import upkeep
from onnx_multi_backend.cache.store import Store

CONTEXT = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)


def apart(test: Callable[..., None], *given: Any) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(test, *given).result()


def started(*given: Any) -> tuple[BaseProcess, Connection]:
    CONTEXT.set_forkserver_preload(["backend_test.unit.cache.worker"])
    here, there = CONTEXT.Pipe(duplex=False)
    process: BaseProcess = CONTEXT.Process(target=work, args=(there, *given), daemon=True)
    process.start()
    there.close()
    assert here.recv() == "ready"
    return process, here


def killed_at_random(chance: random.Random, longest: float, *given: Any) -> None:
    victim, told = started(*given)
    time.sleep(chance.uniform(0.0, longest))
    assert not told.poll(), "it was done before it was killed"
    victim.kill()
    victim.join()


@pytest.mark.parametrize("room", [len(NAMES), 3], ids=["room for all", "eviction all the time"])
def test_entries(tmp_path: Path, room: int) -> None:
    apart(share_entries, tmp_path, room)


def share_entries(tmp_path: Path, room: int) -> None:
    root, limit = tmp_path / "cache", room * (2 * SIZE + 2000)
    chance, killed = random.Random(room), 0
    steady, told = started("entries", root, limit, 2.5)
    started_at = time.monotonic()
    while time.monotonic() < started_at + 2:
        killed_at_random(chance, 0.2, "entries", root, limit, 60.0)
        killed += 1
        upkeep.remove(root / "ort" / key_of(chance.choice(NAMES)))
    made, found = told.recv()
    steady.join()
    assert made > 0
    assert found > 20
    assert killed > 1
    store = Store(root, limit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = {name: store.read("ort", key_of(name)) for name in NAMES}
    assert any(left.values())
    for name, entry in left.items():
        assert entry is None or bytes(entry.files["model"]) == content(name, SIZE)


def test_models(engine: type[omb.Preset], tmp_path: Path) -> None:
    apart(share_models, tmp_path, engine.name)


def share_models(tmp_path: Path, engine: str) -> None:
    """A hundred times each; what is there is taken away now and then, so that it is made again."""
    cache, chance = tmp_path / "cache", random.Random(engine)
    paths = [tmp_path / f"{scale}.onnx" for scale in (1, 2)]
    for scale, path in enumerate(paths):
        onnx.save(large(1.0 + scale), path)
    steady, told = started("models", engine, paths, cache, 100)
    while not told.poll():
        killed_at_random(chance, 0.3, "models", engine, paths, cache, 10_000)
        for entry in upkeep.entries(cache):
            upkeep.remove(entry.folder)
    made, found = told.recv()
    steady.join()
    assert made + found == 100
    assert found > 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in paths:
            omb.presets()[engine].prepare(path, cache_dir=cache)
