# SPDX-License-Identifier: Apache-2.0
"""What the presets keep in a cache, and when they take it: never for another model or option, never a damaged one."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cache.conftest import SIDE, X, large
from onnx_multi_backend.cache import upkeep
from onnx_multi_backend.cache.entry import read_about
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.cache.upkeep import entries
from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
from onnx_multi_backend.engines.ort.target import OrtTarget
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets import base as preset_module
from onnx_multi_backend.sessions import maker as sessions

EXPECTED = X @ np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) + np.arange(SIDE, dtype=np.float32)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model.onnx"
    onnx.save(large(), file)
    return file


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time that a preset loaded a model."""
    seen: list[str] = []

    def spy(model: Any) -> Any:
        seen.append("loaded")
        return load(model)

    monkeypatch.setattr(preset_module, "load", spy)
    return seen


@pytest.fixture
def strictly() -> Iterator[None]:
    """The cache has nothing to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", omb.CacheWarning)
        yield


def result(made: omb.PreparedModel) -> np.ndarray:
    return np.asarray(made.run(X)[0])


def count(cache: Path) -> int:
    return len(list(entries(cache)))


def test_the_second_time_the_model_is_not_loaded(
    engine: type[omb.Preset], cache: Path, path: Path, loads: list[str]
) -> None:
    first = result(engine.prepare(path, cache_dir=cache))
    np.testing.assert_allclose(first, EXPECTED, rtol=1e-4, atol=1e-3)
    assert loads == ["loaded"]
    assert result(engine.prepare(path, cache_dir=cache)).tobytes() == first.tobytes()
    assert loads == ["loaded"]
    (entry,) = entries(cache)
    assert read_about(entry.folder)["preset"] == engine.name
    assert str(path) in read_about(entry.folder)["model"]


def test_without_a_folder_nothing_is_kept(
    engine: type[omb.Preset], cache: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONNX_MULTI_BACKEND_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "user"))
    engine.prepare(path)
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_DIR", str(cache))
    engine.prepare(path, cache_dir=False)
    assert not cache.exists()
    engine.prepare(path)
    assert count(cache) == 1


def test_every_option_counts(engine: type[omb.Preset], cache: Path, path: Path, loads: list[str]) -> None:
    options: list[dict[str, Any]] = [{}, {"adapt": False}]
    if engine.name == "OrtCpu":
        options += [{"intra_op_num_threads": 1}, {"inter_op_num_threads": 2}]
    else:
        options += [{"INFERENCE_NUM_THREADS": 1}, {"performance_hint": "THROUGHPUT"}, {"precision": "bf16"}]
    for given in options:
        engine.prepare(path, cache_dir=cache, **given)
    assert len(loads) == count(cache) == len(options)
    for given in options:
        engine.prepare(path, cache_dir=cache, **given)
    assert len(loads) == len(options)


def test_session_options_count(ort_cpu: type[omb.Preset], cache: Path, path: Path, loads: list[str]) -> None:
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
        for _ in range(2):
            made = omb.OrtBackend(
                path, "CPUExecutionProvider", None, {"graph_optimization_level": level}, cache_dir=cache
            )
            np.testing.assert_allclose(result(made), EXPECTED, rtol=1e-4, atol=1e-3)
    assert len(loads) == count(cache) == 2


def test_an_object_of_session_options_is_not_cached(ort_cpu: type[omb.Preset], cache: Path, path: Path) -> None:
    import onnxruntime

    omb.OrtBackend(path, "CPUExecutionProvider", None, onnxruntime.SessionOptions(), cache_dir=cache)
    assert not cache.exists()


def test_a_user_who_wants_the_optimized_model_gets_it_every_time(
    ort_cpu: type[omb.Preset], cache: Path, path: Path, tmp_path: Path
) -> None:
    wanted = tmp_path / "optimized.onnx"
    for _ in range(2):
        options = {"optimized_model_filepath": str(wanted)}
        omb.OrtBackend(path, "CPUExecutionProvider", None, options, cache_dir=cache)
        assert wanted.exists()
        wanted.unlink()


@pytest.mark.usefixtures("settled", "strictly")
def test_a_changed_model_with_an_old_time_is_another_one(engine: type[omb.Preset], cache: Path, path: Path) -> None:
    first, status = result(engine.prepare(path, cache_dir=cache)), path.stat()
    onnx.save(large(2.0), path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    changed = result(engine.prepare(path, cache_dir=cache))
    assert np.abs(changed - first).max() > 1
    assert changed.tobytes() == result(engine.prepare(path, cache_dir=False)).tobytes()
    assert changed.tobytes() == result(engine.prepare(path, cache_dir=cache)).tobytes()


def test_a_model_that_changes_while_it_is_prepared_is_not_kept(
    engine: type[omb.Preset], cache: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_model = sessions.compile_model

    def interrupted(target: Any, payload: Any) -> Any:
        onnx.save(large(2.0), path)
        return compile_model(target, payload)

    monkeypatch.setattr(sessions, "compile_model", interrupted)
    if engine.__name__ == "OpenvinoBackend":  # which is given the weights of the file that was looked at
        with pytest.raises(omb.InvalidModelError, match="was changed or removed"):
            engine.prepare(path, cache_dir=cache)
    else:
        engine.prepare(path, cache_dir=cache)
    assert count(cache) == 0


@pytest.mark.parametrize("engine", ["OrtCpu"], indirect=True)
def test_a_model_that_changed_since_is_not_prepared_again(
    engine: type[omb.Preset], cache: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.prepare(path, cache_dir=cache)
    made = engine.prepare(path, cache_dir=cache)
    onnx.save(large(2.0), path)
    monkeypatch.setattr(OrtTarget, "caching", lambda self: None)  # as for a provider whose sessions are not kept
    with pytest.raises(omb.InvalidModelError, match="was changed or removed after it was prepared"):
        made.set_providers(["CPUExecutionProvider"])


@pytest.mark.usefixtures("settled", "strictly")
def test_the_same_model_elsewhere_is_known(
    engine: type[omb.Preset], cache: Path, path: Path, tmp_path: Path, loads: list[str]
) -> None:
    first = engine.prepare(path, cache_dir=cache)
    data = path.read_bytes()
    loads.clear()
    from_bytes = engine.prepare(data, cache_dir=cache)
    assert loads == []
    assert "model 'tiny'" in repr(from_bytes), "it is called as models in memory are"
    moved = path.rename(tmp_path / "moved.onnx")
    elsewhere = engine.prepare(moved, cache_dir=cache)
    assert f"'{moved}'" in repr(elsewhere)
    assert result(first).tobytes() == result(from_bytes).tobytes() == result(elsewhere).tobytes()
    assert count(cache) == 1


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(data)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("harm", [damage, cut, Path.unlink])
def test_a_damaged_entry_is_made_again(
    engine: type[omb.Preset], cache: Path, path: Path, harm: Callable[[Path], None], loads: list[str]
) -> None:
    first = result(engine.prepare(path, cache_dir=cache))
    (entry,) = entries(cache)
    for name in sorted(file.name for file in entry.folder.iterdir()):
        (entry,) = entries(cache)
        found = [f for f in entry.folder.iterdir() if f.name.partition("-")[0] == name.partition("-")[0]]
        harm(found[0])
        loads.clear()
        with pytest.warns(omb.CacheWarning, match=r"is damaged: .*It is dropped and made again"):
            assert result(engine.prepare(path, cache_dir=cache)).tobytes() == first.tobytes()
        with warnings.catch_warnings():
            warnings.simplefilter("error", omb.CacheWarning)
            assert result(engine.prepare(path, cache_dir=cache)).tobytes() == first.tobytes()
        assert loads == ["loaded"]


def test_what_an_engine_does_not_take_back_is_not_tried_again(
    engine: type[omb.Preset], cache: Path, path: Path, loads: list[str]
) -> None:
    first = result(engine.prepare(path, cache_dir=cache))
    store = Store.at(cache)
    (kept,) = entries(cache)
    entry = store.read(kept.kind, kept.folder.name)
    assert entry is not None
    upkeep.remove(kept.folder)
    with store.draft(kept.kind, kept.folder.name) as draft:
        assert draft.folder is not None
        for name in entry.files:
            (draft.folder / name).write_bytes(b"not what it was")
        draft.keep(entry.facts, entry.about)
    loads.clear()
    with pytest.warns(omb.CacheWarning, match="does not read what it wrote of .*without the cache from now on"):
        assert result(engine.prepare(path, cache_dir=cache)).tobytes() == first.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error", omb.CacheWarning)
        for _ in range(2):
            assert result(engine.prepare(path, cache_dir=cache)).tobytes() == first.tobytes()
    assert len(loads) == 3


def test_a_folder_that_cannot_be_made_costs_only_the_cache(
    engine: type[omb.Preset], tmp_path: Path, path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(omb.CacheWarning, match="cannot be used"):
        made = engine.prepare(path, cache_dir=tmp_path / "file" / engine.name)
    np.testing.assert_allclose(result(made), EXPECTED, rtol=1e-4, atol=1e-3)


FULL_DISK = """
import resource, signal, sys, warnings
from pathlib import Path
import numpy as np
import onnx_multi_backend as omb
from backend_test.unit.cache.conftest import X
from onnx_multi_backend.cache.upkeep import entries

name, model, cache = sys.argv[1:]
sys.dont_write_bytecode = True  # Python would cut its own files short
expected = omb.prepare(model, preset=name, cache_dir=False).run(X)[0]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))  # no file may have more bytes
for _ in range(2):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = omb.prepare(model, preset=name, cache_dir=cache)
    assert [w.category for w in caught] == [omb.CacheWarning], [str(w.message) for w in caught]
    assert made.run(X)[0].tobytes() == expected.tobytes()
    assert list(entries(Path(cache))) == []
print("good")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the limit on the size of a file is POSIX's")
def test_a_full_disk_costs_only_the_cache(engine: type[omb.Preset], cache: Path, path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, engine.name, str(path), str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "good\n", done.stderr


def test_a_cache_that_is_cleared_meanwhile_costs_only_the_entry(
    engine: type[omb.Preset], cache: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_model = sessions.compile_model

    def cleared(target: Any, payload: Any) -> Any:
        upkeep.clear(cache)
        return compile_model(target, payload)

    monkeypatch.setattr(sessions, "compile_model", cleared)
    with pytest.warns(omb.CacheWarning, match="cannot be kept"):
        made = engine.prepare(path, cache_dir=cache)
    np.testing.assert_allclose(result(made), EXPECTED, rtol=1e-4, atol=1e-3)
    assert count(cache) == 0


def test_an_entry_outlives_its_eviction_while_it_is_used(engine: type[omb.Preset], cache: Path, path: Path) -> None:
    engine.prepare(path, cache_dir=cache)
    made = engine.prepare(path, cache_dir=cache)
    first = result(made)
    upkeep.clear(cache)
    assert count(cache) == 0
    assert result(made).tobytes() == first.tobytes()


@pytest.mark.usefixtures("ort_cpu")
def test_weights_have_names_that_no_other_entry_has(cache: Path, path: Path) -> None:
    """ONNX Runtime opens them by name after they were verified: they are those of this entry, or they are not there."""
    names = set()
    for _ in range(2):
        omb.OrtCpuBackend.prepare(path, cache_dir=cache)
        names.update(file.name for file in cache.rglob("weights-*"))
        upkeep.clear(cache)
    assert len(names) == 2


def test_the_users_model_is_not_held(engine: type[omb.Preset], cache: Path) -> None:
    model = large()
    holders = sys.getrefcount(model)
    kept = [engine.prepare(model, cache_dir=cache) for _ in range(2)]
    assert sys.getrefcount(model) == holders
    assert len({made.run(X)[0].tobytes() for made in kept}) == 1


@pytest.mark.usefixtures("openvino")
def test_a_tiny_model_runs_in_the_thread_that_calls_warm_too(cache: Path) -> None:
    made = [omb.OpenvinoBackend.prepare(models.relu((1, 64)), cache_dir=cache) for _ in range(2)]
    assert [m._session.native.get_property("EXCLUSIVE_ASYNC_REQUESTS") for m in made] == ["YES", "YES"]


@pytest.mark.usefixtures("openvino")
def test_what_openvino_keeps_by_itself_has_all_its_names(cache: Path, tmp_path: Path) -> None:
    """It loses the name of an input that a dropped node passes on, which would then be uninitialised memory."""
    scalars = [models.tensor(name, (), onnx.TensorProto.DOUBLE) for name in "xy"]
    model = models.one_node("Einsum", scalars[:1], scalars[1:], equation="->")
    for _ in range(3):
        made = omb.OpenvinoBackend.prepare(model, cache_dir=cache, CACHE_DIR=str(tmp_path / "own"))
        assert made.run(np.array(5.0)) == (5.0,)
    assert list(tmp_path.rglob("*.blob"))


def recurrent(op_type: str) -> onnx.ModelProto:
    rng, gates = np.random.default_rng(0), {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type]
    weights = {"w": (1, gates * 8, 6), "r": (1, gates * 8, 8), "b": (1, 2 * gates * 8)}
    return models.model(
        [models.node(op_type, ["x", *weights], ["y"], hidden_size=8)],
        [models.tensor("x", ["S", "B", 6])],
        [models.tensor("y", ["S", 1, "B", 8])],
        initializers={name: rng.normal(size=shape).astype(np.float32) for name, shape in weights.items()},
    )


def rotary() -> onnx.ModelProto:
    return models.model(
        [models.node("RotaryEmbedding", ["x", "cos", "sin"], ["y"])],
        [models.tensor("x", [2, 4, 3, 8]), models.tensor("cos", [2, 3, 4]), models.tensor("sin", [2, 3, 4])],
        [models.tensor("y", [2, 4, 3, 8])],
        opsets={"": 23},
    )


@pytest.mark.parametrize("device", ["CPU", "AUTO"])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "RotaryEmbedding"])
def test_what_openvino_exports_wrongly_is_not_kept(
    openvino: type[omb.Preset], cache: Path, name: str, device: str
) -> None:
    model = rotary() if name == "RotaryEmbedding" else recurrent(name)
    rng = np.random.default_rng(1)
    shapes = [(2, 4, 3, 8), (2, 3, 4), (2, 3, 4)] if name == "RotaryEmbedding" else [(5, 3, 6)]
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    expected = openvino.prepare(model, cache_dir=False).run(inputs)[0]
    told = []
    for _ in range(3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = openvino.prepare(model, device, cache_dir=cache)
        told += [str(w.message) for w in caught if w.category is omb.CacheWarning]
        assert made.run(inputs)[0].tobytes() == expected.tobytes()
    assert [file.name for file in cache.rglob("*") if file.is_file()] == ["manifest.json"][: device == "CPU"]
    assert len(told) == (device == "CPU"), told
    assert all("is not kept in the cache: OpenVINO's export may bring its layers back wrong" in words for words in told)


@pytest.mark.usefixtures("openvino")
def test_engines_for_fixed_shapes_keep_a_session_for_each(
    cache: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fixed(omb.OpenvinoBackend):
        name = "Fixed"
        fixed_shapes = True

    batches = [np.concatenate([X] * n) for n in (1, 2, 3)]
    first = [
        made.tobytes()
        for outputs in map(Fixed.prepare(path, input_example=X, cache_dir=cache).run, batches)
        for made in outputs
    ]
    assert count(cache) == 3
    monkeypatch.setattr(OpenvinoTarget, "build", lambda *given: pytest.fail("it was compiled again"))
    warm = Fixed.prepare(path, input_example=X, cache_dir=cache)
    assert [made.tobytes() for outputs in map(warm.run, batches) for made in outputs] == first
    assert list(warm._session.native.inputs[0].shape) == [1, SIDE]
