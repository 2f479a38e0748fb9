# SPDX-License-Identifier: Apache-2.0
"""``onnx-multi-backend cache``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend_test.unit.cli.conftest import Cli
from onnx_multi_backend.cache.key import make_key
from onnx_multi_backend.cache.store import Store


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with three entries, one of them damaged."""
    store = Store(tmp_path / "cache", 1 << 30)
    for name, preset in (("a", "OrtCpu"), ("b", "OrtCpu"), ("c", "Openvino")):
        with store.draft("ort", make_key(name, "engine 1.0")) as draft:
            assert draft.folder is not None
            (draft.folder / "model").write_bytes(b"x" * 2048)
            draft.keep({}, {"preset": preset, "engine": "engine 1.0"})
    (store.root / "ort" / make_key("c", "engine 1.0") / "manifest.json").write_text("damaged")
    return store.root


def test_info_tells_what_is_kept(cli: Cli, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_SIZE", "1GiB")
    done = cli("cache", "info", "--cache-dir", cache)
    assert done.code == 0
    facts, table, others = done.out.split("\n\n")
    told = {line.split(None, 1)[0]: line.split(None, 1)[1] for line in facts.splitlines()}
    assert told["folder"] == str(cache)
    assert told["entries"] == "3"
    assert told["size"].endswith("KiB")
    assert told["limit"] == "1.0 GiB (ONNX_MULTI_BACKEND_CACHE_SIZE sets it)"
    rows = [line.split() for line in table.splitlines()]
    assert [row[0] for row in rows] == ["Preset", "OrtCpu", "damaged"]
    assert rows[1][1:4] == ["engine", "1.0", "2"]
    assert others.startswith("The OrtOpenvino presets keep models for GPU and NPU alone")


def test_info_names_models_that_cannot_be_kept(cli: Cli, cache: Path) -> None:
    with Store(cache, 1 << 30).draft("openvino", make_key("d", "engine 1.0")) as draft:
        about = {
            "preset": "Openvino",
            "engine": "engine 1.0",
            "model": "'speech.onnx'",
            "unkept": "its layers are LSTM",
        }
        draft.keep({"useless": True}, about)
    told = json.loads(cli("cache", "info", "--json", "--cache-dir", cache).out)
    assert (told["entries"], [u["model"] for u in told["unkept"]]) == (3, ["'speech.onnx'"])
    assert (
        "Openvino does not keep 'speech.onnx': its layers are LSTM." in cli("cache", "info", "--cache-dir", cache).out
    )


def test_info_as_json(cli: Cli, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_DIR", str(cache))
    told = json.loads(cli("cache", "info", "--json").out)
    assert told["folder"] == str(cache)
    assert told["entries"] == 3
    assert told["bytes"] == sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())
    assert {(p["preset"], p["engine"], p["entries"]) for p in told["presets"]} == {
        ("OrtCpu", "engine 1.0", 2),
        ("damaged", "", 1),
    }


def test_clear_tells_what_it_removed(cli: Cli, cache: Path) -> None:
    (cache / "mine.txt").write_text("mine")
    done = cli("cache", "clear", "--cache-dir", cache)
    assert done.code == 0
    assert done.out.startswith("3 entries, ")
    assert done.out.endswith(f"removed from '{cache}'.\n")
    assert [item.name for item in cache.iterdir()] == ["mine.txt"]
    assert cli("cache", "clear", "--cache-dir", cache).out == f"0 entries, 0 bytes, removed from '{cache}'.\n"


def test_a_folder_that_is_a_file_is_an_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert cli("cache", "info", "--cache-dir", tmp_path / "file").error().startswith("--cache-dir is a folder")


def test_a_wrong_limit_is_an_error(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_SIZE", "lots")
    assert "'lots' was given" in cli("cache", "info", "--cache-dir", tmp_path).error()
