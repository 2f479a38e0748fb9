# SPDX-License-Identifier: Apache-2.0
"""The cache stays within its limit, and only what is its own is removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend_test.unit.cache.conftest import Put, content, key_of
from onnx_multi_backend.cache import upkeep
from onnx_multi_backend.cache.fingerprint import hash_model
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.cache.upkeep import clear, entries


def names(store: Store) -> set[str]:
    """The entries that are there, by the names that `put` gave them."""
    return {name for name in "abcdef" if (store.root / "ort" / key_of(name)).is_dir()}


@pytest.fixture
def small(tmp_path: Path) -> Store:
    """A store for three entries of 10,000 bytes."""
    return Store(tmp_path / "small", 33_000)


def test_the_least_recently_used_goes_first(small: Store, put: Put) -> None:
    for age, name in enumerate("abc"):
        os.utime(put(name, 10_000, into=small) / "manifest.json", (1000 + age, 1000 + age))
    assert small.read("ort", key_of("a")) is not None, "which counts as use"
    put("d", 10_000, into=small)
    assert names(small) == {"a", "c", "d"}
    put("e", 10_000, into=small)
    assert names(small) == {"a", "d", "e"}


def test_two_large_ones_go_for_a_larger_one(small: Store, put: Put) -> None:
    for age, name in enumerate("abc"):
        os.utime(put(name, 10_000, into=small) / "manifest.json", (1000 + age, 1000 + age))
    put("d", 20_000, into=small)
    assert names(small) == {"c", "d"}


def test_what_is_larger_than_the_whole_cache_is_not_kept(small: Store, put: Put) -> None:
    put("a", 10_000, into=small)
    put("b", 40_000, into=small)
    assert names(small) == {"a"}


def test_entries_of_other_processes_count(small: Store, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        put(name, 10_000, into=small)
    monkeypatch.setattr(upkeep, "_seen", {})  # as in a process that has just started
    put("d", 10_000, into=small)
    assert len(names(small)) == 3


def test_what_an_engine_keeps_counts_with_all_it_wrote(small: Store, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = small.engine_folder("tensorrt", key_of("a"), {})
    assert folder is not None
    (folder / "deep").mkdir()
    (folder / "deep" / "engine").write_bytes(content("engine", 30_000))
    os.utime(folder / "manifest.json", (1000, 1000))
    monkeypatch.setattr(upkeep, "_seen", {})
    put("b", 10_000, into=small)
    assert not folder.exists()
    assert names(small) == {"b"}


def test_what_a_process_that_died_left_behind_is_swept_up(store: Store, put: Put) -> None:
    for name, age in (("0" * 16, 7200), ("1" * 16, 60)):
        left = store.root / "ort" / f".partial-{name}"
        left.mkdir(parents=True)
        (left / "model").write_bytes(b"half")
        then = left.stat().st_mtime - age
        os.utime(left, (then, then))
    put("a")
    assert {item.name for item in (store.root / "ort").iterdir()} == {key_of("a"), f".partial-{'1' * 16}"}


@pytest.mark.usefixtures("settled")
def test_clear_removes_what_is_ours_and_nothing_else(store: Store, put: Put, tmp_path: Path) -> None:
    put("a")
    put("b")
    assert store.engine_folder("tensorrt", key_of("c"), {}) is not None
    model = tmp_path / "model.onnx"
    model.write_bytes(b"model")
    assert hash_model(model, store.root, on_error=store.unusable).settled
    (store.root / "ort" / ".partial-0123456789abcdef").mkdir()
    foreign = [store.root / "mine.txt", store.root / "ort" / "notes.txt", store.root / "fingerprints" / "notes.txt"]
    for file in foreign:
        file.write_text("mine")
    (store.root / "ort" / "folder").mkdir()
    (store.root / "other" / key_of("a")).mkdir(parents=True)
    removed = clear(store.root)
    assert len(removed) == 3
    assert sum(entry.size for entry in removed) > 2000
    assert list(entries(store.root)) == []
    left = {str(item.relative_to(store.root)) for item in store.root.rglob("*")}
    assert left == {
        "mine.txt",
        "ort",
        "ort/notes.txt",
        "ort/folder",
        "fingerprints",
        "fingerprints/notes.txt",
        "other",
        f"other/{key_of('a')}",
    }


def test_a_cache_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list(entries(tmp_path / "nowhere")) == []
    assert clear(tmp_path / "nowhere") == []
    assert not (tmp_path / "nowhere").exists()
