# SPDX-License-Identifier: Apache-2.0
"""Weights in files beside the model: they run from anywhere, and nothing outside the folder is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from packaging.version import Version

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.array([[1, 2, 3]], np.float32)


def _expected() -> np.ndarray:
    weights = np.arange(3, dtype=np.float32)[:, None] + 10 * np.arange(2, dtype=np.float32)
    return X @ weights - 1


def _save(folder: Path, made: onnx.ModelProto | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    onnx.save(made or models.linear(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (folder / "weights.bin").stat().st_size >= 24
    return path


def _relocate(path: Path, location: str) -> Path:
    made = onnx.load(path, load_external_data=False)
    for tensor in made.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    onnx.save(made, path)
    return path


@pytest.mark.parametrize("where", ["absolute", "from another folder", "from its folder"])
def test_a_model_with_external_data_runs_by_path(
    preset: type[omb.Preset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = _save(tmp_path / "models")
    if where == "absolute":
        given = path
    elif where == "from another folder":
        monkeypatch.chdir(tmp_path)
        given = Path("models/model.onnx")
    else:
        monkeypatch.chdir(path.parent)
        given = Path("model.onnx")
    rep = preset.prepare(given)
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(rep.run(X)[0], _expected())


@pytest.mark.parametrize("where", ["absolute", "from another folder", "from its folder"])
def test_it_also_runs_when_the_model_is_adapted(
    preset: type[omb.Preset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    made = models.linear()
    made.ir_version = onnx.IR_VERSION
    made.opset_import[0].version = onnx.defs.onnx_opset_version()
    path = _save(tmp_path / "models", made)
    monkeypatch.chdir({"absolute": "/", "from another folder": tmp_path, "from its folder": path.parent}[where])
    given = {"absolute": path, "from another folder": "models/model.onnx", "from its folder": "model.onnx"}[where]
    rep = preset.prepare(given)
    if preset.name != "Openvino":
        assert {a.pass_name for a in rep.adaptations} == {"ir_version", "opset_version"}
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(rep.run(X)[0], _expected())


def test_it_runs_when_openvino_needs_identities_behind_its_inputs(openvino: type[omb.Preset], tmp_path: Path) -> None:
    made = models.linear()
    made.graph.node.insert(0, models.node("Dropout", ["x"], ["dx"]))
    made.graph.node[1].input[0] = "dx"
    rep = openvino.prepare(_save(tmp_path, made))
    np.testing.assert_array_equal(rep.run(X)[0], _expected())


def test_weights_below_the_models_folder_are_read(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _save(tmp_path)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "weights.bin").rename(tmp_path / "deeper" / "weights.bin")
    np.testing.assert_array_equal(engine.prepare(_relocate(path, "deeper/weights.bin")).run(X)[0], _expected())


def test_a_missing_file_is_named_with_its_tensor(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _save(tmp_path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(omb.InvalidModelError, match=r"tensor '[wb]' is missing.*weights\.bin.*Put it beside"):
        engine.prepare(path)
    assert not engine.is_compatible(path)


def test_a_truncated_file_is_named_with_its_size(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _save(tmp_path)
    (tmp_path / "weights.bin").write_bytes(bytes(3))
    with pytest.raises(omb.InvalidModelError, match=r"truncated.*weights\.bin.*has 3 bytes"):
        engine.prepare(path)
    assert not engine.is_compatible(path)


def test_a_file_too_short_for_a_tensor_without_a_length_is_refused(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _save(tmp_path)
    made = onnx.load(path, load_external_data=False)
    for tensor in made.graph.initializer:
        kept = [e for e in tensor.external_data if e.key == "location"]
        del tensor.external_data[:]
        tensor.external_data.extend(kept)
    onnx.save(made, path)
    (tmp_path / "weights.bin").write_bytes(bytes(3))
    with pytest.raises(omb.InvalidModelError, match=r"weights\.bin|[wb]"):
        engine.prepare(path)


@pytest.mark.parametrize("location", ["../weights.bin", "deeper/../../weights.bin", "ABSOLUTE", "LINK", "", "."])
def test_a_location_outside_the_folder_is_never_read(engine: type[omb.Preset], tmp_path: Path, location: str) -> None:
    path = _save(tmp_path / "models")
    outside = tmp_path / "weights.bin"
    (path.parent / "weights.bin").rename(outside)
    (path.parent / "deeper").mkdir()
    if location == "ABSOLUTE":
        location = str(outside)
    elif location == "LINK":
        (path.parent / "link.bin").symlink_to(outside)
        location = "link.bin"
    _relocate(path, location)
    with pytest.raises(omb.InvalidModelError, match=r"outside the model's folder|is missing"):
        engine.prepare(path)
    assert not engine.is_compatible(path)


def test_a_model_that_is_a_link_finds_its_weights_beside_its_target(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    """As the caches of model hubs lay files out: both the model and its weights are links into one folder."""
    import onnxruntime

    path = _save(tmp_path / "blobs")
    view = tmp_path / "view"
    view.mkdir()
    for name in ("model.onnx", "weights.bin"):
        (view / name).symlink_to(path.parent / name)
    if Version(onnxruntime.__version__) < Version("1.31"):
        with pytest.raises(omb.UnsupportedModelError, match="External data path"):  # it allows no links
            ort_cpu.prepare(view / "model.onnx")
        return
    np.testing.assert_array_equal(ort_cpu.prepare(view / "model.onnx").run(X)[0], _expected())


def test_external_data_of_bytes_or_a_proto_has_no_folder(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _save(tmp_path)
    for given in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        with pytest.raises(omb.InvalidModelError, match="no folder.*Pass the model's path"):
            engine.prepare(given)
    np.testing.assert_array_equal(engine.prepare(onnx.load(path)).run(X)[0], _expected())
