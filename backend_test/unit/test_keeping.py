# SPDX-License-Identifier: Apache-2.0
"""What the official suites had rewritten is handed to the emulated processors, and made there only where it is missing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend_test.processors import keeping, making
from backend_test.unit import models
from onnx_multi_backend.adapt import Adapted, lowering
from onnx_multi_backend.adapt.pipeline import untouched

MODEL = models.relu()
WRITTEN = untouched(models.one_node("Abs", [models.tensor("x")], [models.tensor("y")]))


def lower(adapted: Adapted) -> Iterator[Adapted]:
    yield WRITTEN


def case(name: str, file: str = "test_openvino.py") -> Any:
    return SimpleNamespace(name=name, path=Path(file), obj=SimpleNamespace(onnx_about=None))


def ran(keeper: keeping.Keeper, item: Any) -> None:
    """Run a case that has its model rewritten, as pytest does."""
    around = keeper.pytest_runtest_call(item)
    next(around)
    next(lowering.lower(untouched(MODEL)))  # type: ignore[call-arg]
    with pytest.raises(StopIteration):
        around.send(None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a run with one case left."""
    monkeypatch.setattr(lowering, "lower", lower)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    keeper = keeping.Keeper(tmp_path / "kept")
    ran(keeper, case("test_relu_cpu"))
    ran(keeper, case("test_abs_cpu", "test_ort_openvino.py"))
    ran(keeper, SimpleNamespace(name="test_of_ours", path=Path("test_openvino.py"), obj=None))
    keeper.pytest_sessionfinish()
    assert lowering.lower is lower
    return tmp_path / "kept"


def test_only_the_suites_that_are_emulated_are_kept(folder: Path) -> None:
    assert [file.name for file in folder.iterdir()] == ["Openvino-gw1.pickle"]
    kept = keeping.read(folder, "Openvino")
    assert kept.cases == {"test_relu_cpu"}
    assert [made.proto for made in kept.taken.values()] == [WRITTEN.proto]
    assert keeping.read(folder, "OrtCpu") == (set(), {})


def test_what_another_release_left_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "installed_version", lambda name: "another")
    keeping.maker.cache_clear()
    assert keeping.read(folder, "Openvino") == (set(), {})
    keeping.maker.cache_clear()


def test_what_is_missing_is_rewritten(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    engine = SimpleNamespace(prepare=prepared.append)
    monkeypatch.setattr(making, "adapted_cases", lambda preset: ["test_relu_cpu", "test_neg_cpu"])
    monkeypatch.setattr(making, "load_model", lambda name: name)
    monkeypatch.setattr(making, "get_preset", lambda name: engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "lower", lowering.lower)  # put back afterwards
        making.main("Openvino", tmp_path / "made.pickle", folder)
    assert prepared == ["test_neg_cpu"]
    assert len(pickle.loads((tmp_path / "made.pickle").read_bytes())) == 1
