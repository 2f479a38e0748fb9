# SPDX-License-Identifier: Apache-2.0
"""An entry is there whole or not at all, and what is damaged is never served."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from backend_test.unit.cache.conftest import Put, content, key_of
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.errors import CacheWarning


def truncate(entry: Path) -> None:
    (entry / "model").write_bytes(content("a", 1000)[:-1])


def flip_a_bit(entry: Path) -> None:
    data = bytearray(content("a", 1000))
    data[500] ^= 1
    (entry / "model").write_bytes(data)


def lose_the_file(entry: Path) -> None:
    (entry / "model").unlink()


def lose_the_manifest(entry: Path) -> None:
    (entry / "manifest.json").unlink()


def flip_a_bit_of_the_manifest(entry: Path) -> None:
    text = (entry / "manifest.json").read_text()
    assert '"name":"a"' in text
    (entry / "manifest.json").write_text(text.replace('"name":"a"', '"name":"c"'))


def empty_the_manifest(entry: Path) -> None:
    (entry / "manifest.json").write_bytes(b"")


def test_what_is_kept_is_found(store: Store, put: Put) -> None:
    assert store.read("ort", key_of("a")) is None
    folder = put("a")
    entry = store.read("ort", key_of("a"))
    assert entry is not None
    assert entry.folder == folder
    assert entry.facts == {"name": "a"}
    assert bytes(entry.files["model"]) == content("a", 1000)
    assert store.read("openvino", key_of("a")) is None


def test_an_empty_file_is_kept_too(store: Store) -> None:
    with store.draft("ort", key_of("a")) as draft:
        assert draft.folder is not None
        (draft.folder / "empty").touch()
        draft.keep({}, {})
    entry = store.read("ort", key_of("a"))
    assert entry is not None
    assert entry.files == {"empty": b""}


def test_a_draft_is_no_entry_until_it_is_kept(store: Store) -> None:
    with store.draft("ort", key_of("a")) as draft:
        assert draft.folder is not None
        (draft.folder / "model").write_bytes(b"half")
        assert store.read("ort", key_of("a")) is None
    assert list((store.root / "ort").iterdir()) == []


def test_a_draft_is_thrown_away_by_an_error(store: Store) -> None:
    def fail() -> None:
        with store.draft("ort", key_of("a")) as draft:
            assert draft.folder is not None
            (draft.folder / "model").write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list((store.root / "ort").iterdir()) == []


def test_of_two_that_make_the_same_entry_the_first_one_stays(store: Store, put: Put) -> None:
    with store.draft("ort", key_of("a")) as draft:
        assert draft.folder is not None
        (draft.folder / "model").write_bytes(b"second")
        put("a")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draft.keep({"name": "second"}, {})
    entry = store.read("ort", key_of("a"))
    assert entry is not None
    assert entry.facts == {"name": "a"}
    assert [item.name for item in (store.root / "ort").iterdir()] == [key_of("a")]


def test_another_process_was_first_though_its_entry_has_gone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with the cache then, and nothing is said."""

    def taken(folder: Path, target: Path) -> Path:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder), None, str(target))

    monkeypatch.setattr(Path, "rename", taken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with store.draft("ort", key_of("a")) as draft:
            draft.keep({}, {})


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncate, "model has 999 bytes instead of 1000"),
        (flip_a_bit, "model has other bytes"),
        (lose_the_file, "model is missing"),
        (lose_the_manifest, r"manifest\.json is missing"),
        (flip_a_bit_of_the_manifest, "its manifest is damaged"),
        (empty_the_manifest, "its manifest is damaged"),
    ],
)
def test_a_damaged_entry_is_dropped_with_a_warning(
    store: Store, put: Put, damage: Callable[[Path], None], words: str
) -> None:
    damage(put("a"))
    put("b")
    with pytest.warns(CacheWarning, match=f"is damaged: {words}"):
        assert store.read("ort", key_of("a")) is None
    assert [item.name for item in (store.root / "ort").iterdir()] == [key_of("b")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.read("ort", key_of("a")) is None, "it is warned of once"
        put("a")
        assert store.read("ort", key_of("a")) is not None


def test_what_is_read_stays_as_it_was_when_the_entry_goes(store: Store, put: Put) -> None:
    put("a", 100_000)
    entry = store.read("ort", key_of("a"))
    assert entry is not None
    (entry.folder / "manifest.json").unlink()
    with pytest.warns(CacheWarning):
        store.read("ort", key_of("a"))
    assert not entry.folder.exists()
    assert bytes(entry.files["model"]) == content("a", 100_000)


def test_writing_to_what_was_read_changes_no_file(store: Store, put: Put) -> None:
    put("a")
    entry = store.read("ort", key_of("a"))
    assert entry is not None
    entry.files["model"][:3] = b"xyz"  # type: ignore[index]
    again = store.read("ort", key_of("a"))
    assert again is not None
    assert bytes(again.files["model"]) == content("a", 1000)


def test_a_folder_that_cannot_be_made_is_warned_of_once_and_costs_nothing_else(tmp_path: Path, put: Put) -> None:
    (tmp_path / "file").touch()
    unusable = Store(tmp_path / "file", 1000)
    with pytest.warns(CacheWarning, match="cannot be used: .*Models are prepared without it"):
        put("a", into=unusable)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        put("a", into=unusable)
        assert unusable.read("ort", key_of("a")) is None
        assert unusable.engine_folder("tensorrt", key_of("a"), {}) is None


FULL_DISK = """
import resource, signal, warnings
from pathlib import Path
from onnx_multi_backend.cache.key import make_key
from onnx_multi_backend.cache.store import Store

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))  # no file may have more bytes: the manifest cannot be written
store = Store(Path(sys.argv[1]), 10**9)
with warnings.catch_warnings(record=True) as caught, store.draft("ort", make_key("a", "none")) as draft:
    warnings.simplefilter("always")
    (draft.folder / "model").write_bytes(b"little")
    draft.keep({}, {})
print([w.category.__name__ for w in caught], list(store.root.rglob("*/*")), store.read("ort", make_key("a", "none")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the limit on the size of a file is POSIX's")
def test_a_full_disk_is_warned_of_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"import sys\n{FULL_DISK}", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "['CacheWarning'] [] None\n", done.stderr


def test_an_engines_own_folder_is_made_once_and_takes_what_the_engine_writes(store: Store) -> None:
    folder = store.engine_folder("tensorrt", key_of("a"), {"preset": "Test"})
    assert folder is not None
    (folder / "engine").write_bytes(b"engine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.engine_folder("tensorrt", key_of("a"), {}) == folder
    (folder / "engine").write_bytes(b"a better engine")
    assert store.engine_folder("tensorrt", key_of("a"), {}) == folder
    assert (folder / "engine").read_bytes() == b"a better engine"


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")
@pytest.mark.parametrize("name", ["manifest.json", "model"])
def test_a_pipe_in_an_entry_is_damage_and_nobody_waits_for_it(store: Store, put: Put, name: str) -> None:
    folder = put("a")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.warns(CacheWarning, match="not a regular file"):
        assert store.read("ort", key_of("a")) is None
    assert not folder.exists()
