# SPDX-License-Identifier: Apache-2.0
"""A store of its own for each test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from backend_test.unit import models
from onnx_multi_backend.cache.key import make_key
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.models import stamp

Put = Callable[..., Path]

SIDE = 200
X = np.linspace(-1, 1, SIDE, dtype=np.float32)[None]


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


def large(scale: float = 1.0) -> onnx.ModelProto:
    """``y = x @ w + b``, whose weights no engine keeps among its nodes."""
    weights = {
        "w": (scale * np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32)).reshape(SIDE, SIDE),
        "b": np.arange(SIDE, dtype=np.float32),
    }
    nodes = [models.node("MatMul", ["x", "w"], ["xw"]), models.node("Add", ["xw", "b"], ["y"])]
    return models.model(
        nodes, [models.tensor("x", ("N", SIDE))], [models.tensor("y", ("N", SIDE))], initializers=weights
    )
