# SPDX-License-Identifier: Apache-2.0
"""Weights in files beside the model: they run from anywhere, and nothing outside the folder is read."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from packaging.version import Version

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.session import Payload, Session

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
    preset: type[omb.Preset],
    limited: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    limited()
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


@pytest.mark.parametrize("location", ["w" * 5000, "w\0.bin", "loop.bin"])
def test_a_location_that_no_file_can_have_is_refused(engine: type[omb.Preset], tmp_path: Path, location: str) -> None:
    path = _save(tmp_path)
    (tmp_path / "loop.bin").symlink_to(tmp_path / "loop.bin")
    with pytest.raises(omb.InvalidModelError, match=r"external data of tensor '[wb]' cannot be found") as raised:
        engine.prepare(_relocate(path, location))
    assert len(str(raised.value)) < 500
    assert not engine.is_compatible(path)


def test_a_model_that_is_a_link_finds_its_weights_beside_its_target(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    """As the caches of model hubs lay files out: both the model and its weights are links into one folder."""
    path = _save(tmp_path / "blobs")
    view = tmp_path / "view"
    view.mkdir()
    for name in ("model.onnx", "weights.bin"):
        (view / name).symlink_to(path.parent / name)
    np.testing.assert_array_equal(ort_cpu.prepare(view / "model.onnx").run(X)[0], _expected())


def test_external_data_of_bytes_or_a_proto_has_no_folder(engine: type[omb.Preset], tmp_path: Path) -> None:
    path = _save(tmp_path)
    for given in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        with pytest.raises(omb.InvalidModelError, match="no folder.*Pass the model's path"):
            engine.prepare(given)
    np.testing.assert_array_equal(engine.prepare(onnx.load(path)).run(X)[0], _expected())


def _large(folder: Path, megabytes: int = 200) -> Path:
    """A model with a sparse file of weights, all zero, and a node that each engine needs rewritten."""
    rows, columns = megabytes * 2**20 // 4096, 1024
    weight = onnx.TensorProto(name="w", data_type=models.FLOAT, dims=[rows, columns], data_location=1)
    for key, value in {"location": "weights.bin", "offset": 0, "length": rows * columns * 4}.items():
        weight.external_data.add(key=key, value=str(value))
    made = models.model(
        [
            models.node("MatMul", ["x", "w"], ["m"]),
            models.node("Mod", ["m", "two"], ["rest"]),
            models.node("CumProd", ["rest", "axis"], ["y"]),
        ],
        [models.tensor("x", [1, rows])],
        [models.tensor("y", [1, columns])],
        initializers={"two": np.float32(2), "axis": np.int64(1)},
        opsets={"": onnx.defs.onnx_opset_version()},
    )
    made.graph.initializer.append(weight)
    folder.mkdir(exist_ok=True)
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(rows * columns * 4)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    return folder / "model.onnx"


def test_large_weights_are_not_loaded_to_adapt_a_model(
    engine: type[omb.Preset], limited: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
    from onnx_multi_backend.engines.ort.target import OrtTarget

    limited()
    sizes: list[int] = []
    for target in (OrtTarget, OpenvinoTarget):
        build = target.build

        def built(self: object, payload: Payload, build: Callable[..., Session] = build) -> Session:
            sizes.append(payload.adapted.proto.ByteSize())
            return build(self, payload)

        monkeypatch.setattr(target, "build", built)
    path = _large(tmp_path / "large")
    before = sorted(tmp_path.rglob("*"))
    rep = engine.prepare(path)
    assert {a.pass_name for a in rep.adaptations} >= {"Openvino": {"cum_prod"}, "OrtCpu": {"floor_mod"}}[engine.name]
    assert max(sizes) < 100_000
    assert sorted(tmp_path.rglob("*")) == before
    np.testing.assert_array_equal(rep.run(np.ones(rep.get_inputs()[0].shape, np.float32))[0], np.zeros((1, 1024)))


@pytest.mark.parametrize("links", [True, False])
def test_weights_reach_openvino_with_a_changed_model(
    openvino: type[omb.Preset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Dropout makes OpenVINO lose an input's name, so that the model has to be changed."""
    if not links:

        def no_link(*_: object) -> None:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        monkeypatch.setattr(os, "link", no_link)
    made = models.linear()
    made.graph.node.insert(0, models.node("Dropout", ["x"], ["dx"]))
    made.graph.node[1].input[0] = "dx"
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((0, 2), np.float32), "unused"))
    rep = openvino.prepare(_save(tmp_path, made))
    gc.collect()
    np.testing.assert_array_equal(rep.run(X)[0], _expected())


@pytest.mark.parametrize("adapted", [False, True])
def test_links_into_a_cache_are_followed_whether_or_not_the_model_is_adapted(
    engine: type[omb.Preset], limited: Callable[..., None], tmp_path: Path, adapted: bool
) -> None:
    """As the caches of model hubs lay files out, also where the links of the weights lead to another name."""
    limited()
    import onnxruntime

    if engine.name == "OrtCpu" and Version(onnxruntime.__version__) < Version("1.31"):
        pytest.skip("ONNX Runtime before 1.31 allows no links")
    made = models.linear()
    if adapted:
        made.graph.node.append(models.node("CumProd", ["y", "axis"], ["z"]))
        made.graph.node.append(models.node("Mod", ["z", "large"], ["rest"]))
        made.graph.output[0].name = "rest"
        for name, value in {"axis": np.int64(0), "large": np.float32(1000)}.items():
            made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
        made.opset_import[0].version = onnx.defs.onnx_opset_version()
    path = _save(tmp_path / "blobs", made)
    view = tmp_path / "view"
    view.mkdir()
    for name in ("model.onnx", "weights.bin"):
        (path.parent / name).rename(path.parent / f"blob of {name}")
        (view / name).symlink_to(path.parent / f"blob of {name}")
    rep = engine.prepare(view / "model.onnx")
    assert bool({a.pass_name for a in rep.adaptations} & {"cum_prod", "floor_mod"}) is adapted
    np.testing.assert_allclose(rep.run(X)[0], _expected())


def test_a_rewritten_model_with_weights_beside_it_is_compiled_again(preset: type[omb.Preset], tmp_path: Path) -> None:
    weights = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    made = models.model(
        [models.node("MatMul", ["x", "w"], ["p"]), models.node("CumProd", ["p", "axis"], ["y"])],
        [models.tensor("x", (1, 3))],
        [models.tensor("y", (1, 3))],
        initializers={"w": weights, "axis": np.int64(1)},
        opsets={"": 26},
    )
    path = tmp_path / "model.onnx"
    # Of so many bytes, with Python's own head on top, are the weights; the axis stays inside, where rules can read it.
    onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=60)
    rep = preset.prepare(path, fallback="full")
    assert rep.adaptations or preset.name != "Openvino"
    for (y,) in (rep.run(X), *rep.run_many([X] * 3)):
        np.testing.assert_allclose(y, np.cumprod(X @ weights, axis=1), rtol=1e-6)


def _beside(folder: Path, **fields: Any) -> Path:
    """``y = x + w`` with three weights in a file, declared in another way."""
    (folder / "w.bin").write_bytes(np.int64([7, 8, 9]).tobytes())
    w = onnx.TensorProto(name="w", data_type=onnx.TensorProto.INT64, data_location=onnx.TensorProto.EXTERNAL, dims=[3])
    w.external_data.add(key="location", value="w.bin")
    model = models.model(
        [models.node("Add", ["x", "w"], ["y"])],
        [models.tensor("x", [3], models.INT64)],
        [models.tensor("y", [3], models.INT64)],
    )
    if length := fields.pop("length", ""):
        w.external_data.add(key="length", value=length)
    for name, values in fields.items():
        del getattr(w, name)[:]
        getattr(w, name).extend(values)
    model.graph.initializer.append(w)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("length", ["", "-2", "24"])
@pytest.mark.parametrize("dims", [[-3], [-1], [-1, -3]])
def test_a_size_below_0_beside_the_model_is_refused(
    engine: type[omb.Preset], tmp_path: Path, dims: list[int], length: str
) -> None:
    with pytest.raises(omb.OnnxMultiBackendError):
        engine.prepare(_beside(tmp_path, dims=dims, length=length))


def test_values_that_are_beside_the_model_and_in_it_are_those_of_the_file(
    ort_cpu: type[omb.Preset], tmp_path: Path
) -> None:
    path = _beside(tmp_path, int64_data=[1, 2, 3])
    assert ort_cpu.prepare(path).run([np.int64([0, 0, 0])])[0].tolist() == [7, 8, 9]
