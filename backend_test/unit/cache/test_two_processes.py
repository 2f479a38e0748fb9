# SPDX-License-Identifier: Apache-2.0
"""Processes that share a cache, one of them killed at random: none ever sees half an entry, or a wrong one."""

from __future__ import annotations

import multiprocessing
import random
import time
import warnings
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from backend_test.unit.cache.conftest import content, key_of
from backend_test.unit.cache.worker import NAMES, SIZE, work
from onnx_multi_backend.cache import Store, upkeep

CONTEXT = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
CONTEXT.set_forkserver_preload(["backend_test.unit.cache.worker"])


def started(root: Path, limit: int, seconds: float) -> tuple[BaseProcess, Connection]:
    here, there = CONTEXT.Pipe(duplex=False)
    process: BaseProcess = CONTEXT.Process(target=work, args=(root, limit, seconds, there), daemon=True)
    process.start()
    there.close()
    assert here.recv() == "ready"
    return process, here


@pytest.mark.parametrize("room", [len(NAMES), 3], ids=["room for all", "eviction all the time"])
def test_one_is_killed_at_random(tmp_path: Path, room: int) -> None:
    root, limit = tmp_path / "cache", room * (2 * SIZE + 2000)
    chance, started_at = random.Random(room), time.monotonic()
    steady, told = started(root, limit, 3.0)
    killed = 0
    while time.monotonic() < started_at + 2.5:
        victim, _ = started(root, limit, 60.0)
        time.sleep(chance.uniform(0.0, 0.2))
        victim.kill()
        victim.join()
        killed += 1
        upkeep.remove(root / "ort" / key_of(chance.choice(NAMES)))
    made, found = told.recv()
    steady.join()
    assert steady.exitcode == 0
    assert made > 0
    assert found > 100
    assert killed > 3
    store = Store(root, limit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = {name: store.read("ort", key_of(name)) for name in NAMES}
    assert any(left.values())
    for name, entry in left.items():
        assert entry is None or bytes(entry.files["model"]) == content(name, SIZE)
