# SPDX-License-Identifier: Apache-2.0
"""A store of its own for each test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from onnx_multi_backend.cache import Store, make_key, stamp

Put = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", 1 << 30)


@pytest.fixture
def put(store: Store) -> Put:
    """Puts an entry with one file of so many bytes into the store, and tells its folder."""

    def put(name: str, size: int = 1000, *, into: Store = store) -> Path:
        key = key_of(name)
        with into.draft("ort", key) as draft:
            if draft.folder is not None:
                (draft.folder / "model").write_bytes(content(name, size))
            draft.keep({"name": name}, {"preset": "Test", "engine": "none 1.0"})
        return into.root / "ort" / key

    return put


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stamp counts as old enough, so that no test has to wait for the file system's clock."""
    monkeypatch.setattr(stamp, "_TICK_NS", -(10**12))


def key_of(name: str) -> str:
    return make_key(name, "none 1.0")


def content(name: str, size: int) -> bytes:
    """Bytes that no other name has."""
    return (hashlib.sha256(name.encode()).digest() * (size // 32 + 1))[:size]
