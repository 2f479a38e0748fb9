# SPDX-License-Identifier: Apache-2.0
"""A model's fingerprint follows its content, and nothing else; files are not read when their stamp tells enough."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnx_multi_backend.cache import fingerprint
from onnx_multi_backend.cache.fingerprint import Fingerprint, fingerprint_bytes, fingerprint_files, hash_model


def fail(error: OSError) -> None:
    pytest.fail(str(error))


def taken(file: Path, root: Path, external: list[str] | None = None) -> Fingerprint | None:
    """None where the files of external data are neither given nor remembered."""
    model = hash_model(file, root, on_error=fail)
    if external is None and model.external is None:
        return None
    return fingerprint_files(model, root, external, on_error=fail)


def text(file: Path, root: Path, external: list[str] | None = None) -> str:
    made = taken(file, root, external)
    assert made is not None
    return made.text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"model" * 100)
    return file


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read for a fingerprint."""
    names: list[str] = []
    hash_file = fingerprint.hash_file

    def spy(file: Path) -> str:
        names.append(file.name)
        return hash_file(file)

    monkeypatch.setattr(fingerprint, "hash_file", spy)
    return names


def rewrite(file: Path, data: bytes) -> None:
    """Other content with the same size and the same time of change, as `tar` and `cp -p` leave files behind."""
    before = file.stat()
    assert len(data) == before.st_size
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_and_the_same_bytes_are_the_same_model(model: Path, root: Path) -> None:
    assert text(model, root, []) == fingerprint_bytes(model.read_bytes()).text


@pytest.mark.usefixtures("settled")
def test_a_model_that_was_seen_is_not_read_again(model: Path, root: Path, read: list[str]) -> None:
    (model.parent / "weights").write_bytes(b"w" * 500)
    first = text(model, root, ["weights"])
    assert read == ["model.onnx", "weights"]
    assert text(model, root) == first
    assert read == ["model.onnx", "weights"]


@pytest.mark.usefixtures("settled")
def test_a_changed_file_with_an_old_time_is_another_model(model: Path, root: Path) -> None:
    first = text(model, root, [])
    rewrite(model, b"MODEL" * 100)
    assert taken(model, root) is None, "which files hold its external data is not known of other content"
    assert text(model, root, []) not in (first, None)


@pytest.mark.usefixtures("settled")
def test_changed_external_data_with_an_old_time_is_another_model(model: Path, root: Path) -> None:
    weights = model.parent / "weights"
    weights.write_bytes(b"w" * 500)
    first = text(model, root, ["weights"])
    rewrite(weights, b"W" * 500)
    assert text(model, root) != first


@pytest.mark.usefixtures("settled")
def test_a_file_put_in_the_place_of_another_is_another_model(model: Path, root: Path) -> None:
    first = text(model, root, [])
    other = model.with_name("other")
    other.write_bytes(b"other" * 100)
    status = model.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(model)
    assert text(model, root, []) != first


def test_a_young_file_is_read_every_time(model: Path, root: Path, read: list[str]) -> None:
    """It may be written again within one tick of the clock, and its stamp would not show it."""
    made = taken(model, root, [])
    assert made is not None
    assert made.still_holds()
    assert taken(model, root) == made, "which files hold the external data of this content is known anyway"
    assert read == ["model.onnx"] * 3


@pytest.mark.parametrize("wait", ["settled", "young"])
def test_whether_a_file_still_holds(
    model: Path, root: Path, wait: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if wait == "settled":
        request.getfixturevalue("settled")
    made = taken(model, root, [])
    assert made is not None
    assert made.still_holds()
    os.link(model, model.with_name("link"))
    assert made.still_holds(), "what changed is the number of its links"
    rewrite(model, b"MODEL" * 100)
    assert not made.still_holds()
    model.unlink()
    assert not made.still_holds()


@pytest.mark.usefixtures("settled")
def test_a_touched_or_moved_file_is_the_same_model(model: Path, root: Path) -> None:
    first = text(model, root, [])
    os.utime(model, ns=(0, 0))
    assert text(model, root) == first
    moved = model.rename(model.with_name("moved.onnx"))
    assert text(moved, root, []) == first


@pytest.mark.usefixtures("settled")
def test_a_weights_file_that_is_a_model_too_keeps_its_external_data(model: Path, root: Path) -> None:
    weights, other = model.parent / "weights", model.parent / "other.onnx"
    weights.write_bytes(b"w" * 500)
    other.write_bytes(b"o" * 10)
    first = text(model, root, ["weights"])
    text(other, root, ["model.onnx"])
    assert text(model, root) == first


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", [b"", b"{}", b"x" * 200])
def test_a_damaged_record_only_costs_reading_the_file(model: Path, root: Path, read: list[str], damage: bytes) -> None:
    first = text(model, root, [])
    (record,) = (root / fingerprint.FOLDER).iterdir()
    record.write_bytes(damage)
    assert text(model, root, []) == first
    assert len(read) == 2
    assert text(model, root) == first
    assert len(read) == 2


def test_an_empty_file_has_a_fingerprint(tmp_path: Path, root: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert text(empty, root, []) == fingerprint_bytes(b"").text


@pytest.mark.usefixtures("settled")
def test_where_nothing_can_be_remembered_it_is_told(model: Path, tmp_path: Path) -> None:
    told: list[OSError] = []
    (tmp_path / "file").touch()
    hashed = hash_model(model, tmp_path / "file", on_error=told.append)
    assert fingerprint_files(hashed, tmp_path / "file", [], on_error=told.append) is not None
    assert len(told) == 2
