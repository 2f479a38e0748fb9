# SPDX-License-Identifier: Apache-2.0
"""Weights in the file of a model that is written anew for OpenVINO: it copies them from where they were read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.counting import counted
from onnx_multi_backend.engines.openvino import reading, runtime
from onnx_multi_backend.models import own_file
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.models.own_file import is_in

N = 300_000
TYPES = (
    "float32",
    "float16",
    "float64",
    "bfloat16",
    "int8",
    "uint8",
    "int32",
    "bool",
    "int4",
    "float8_e4m3fn",
)


def _weights(kind: str, seed: int) -> Any:
    values = np.random.default_rng(seed).integers(0, 2 if kind == "bool" else 7, N)
    return values.astype(getattr(ml_dtypes, kind, kind))


def _model(kind: str) -> ModelProto:
    """Results that are weights: of an initializer and a Constant."""
    second = numpy_helper.from_array(_weights(kind, 1), "w1")
    return models.model(
        [
            models.node("Constant", [], ["c"], value=second),
            models.node("Cast", ["w0"], ["y0"], to=TensorProto.FLOAT),
            models.node("Cast", ["c"], ["y1"], to=TensorProto.FLOAT),
            models.node("Identity", ["x"], ["y2"]),
        ],
        [models.tensor("x", [1])],
        [models.tensor(f"y{i}", None) for i in range(3)],
        initializers={"w0": _weights(kind, 0)},
        opsets={"": 21},
    )


@pytest.mark.parametrize("kind", TYPES)
def test_each_type(kind: str, tmp_path: Path, openvino: type[omb.Preset]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(kind), path)
    loaded = load(path)
    held = [*loaded.proto.graph.initializer, loaded.proto.graph.node[0].attribute[0].t]
    assert all(is_in(path, tensor) for tensor in held)
    model, _ = reading.read(loaded.proto, loaded)
    path.write_bytes(bytes(path.stat().st_size))  # nothing is read of it any more
    compiled = runtime.core().compile_model(model, "CPU")
    found = compiled([np.zeros(1, np.float32)])
    for seed in (0, 1):
        np.testing.assert_array_equal(found[seed], _weights(kind, seed).astype(np.float32))


def test_a_rewritten_model(tmp_path: Path, openvino: type[omb.Preset]) -> None:
    """A constant with an axis more than what it is multiplied by, behind a Reshape: see `axes_given_before`."""
    weights = np.random.default_rng(0).normal(size=(256, 512)).astype(np.float32)
    path = tmp_path / "model.onnx"
    onnx.save(
        models.model(
            [
                models.node("MatMul", ["x", "w"], ["p"]),
                models.node("Reshape", ["p", "sizes"], ["r"]),
                models.node("Mul", ["r", "one"], ["y"]),
            ],
            [models.tensor("x", [2, 256])],
            [models.tensor("y", None)],
            initializers={"w": weights, "sizes": np.array([4, 256]), "one": np.full((1, 1, 1), 2, np.float32)},
            opsets={"": 17},
        ),
        path,
    )
    rep = openvino.prepare(path)
    assert "axes_given_before" in [change.pass_name for change in rep.adaptations]
    x = np.random.default_rng(1).normal(size=(2, 256)).astype(np.float32)
    np.testing.assert_allclose(rep.run([x])[0], 2 * (x @ weights).reshape(1, 4, 256), rtol=1e-4, atol=1e-4)


def test_a_file_that_was_changed_meanwhile(tmp_path: Path, openvino: type[omb.Preset]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("float32"), path)
    loaded = load(path)
    onnx.save(helper.make_model(loaded.proto.graph), path)
    with pytest.raises(omb.InvalidModelError, match="was changed"):
        reading.read(loaded.proto, loaded)


def test_other_entries_of_external_data(tmp_path: Path, openvino: type[omb.Preset]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("float32"), path)
    loaded = load(path)
    loaded.proto.graph.initializer[0].external_data.add(key="checksum", value="abc")
    model, _ = reading.read(loaded.proto, loaded)
    found = runtime.core().compile_model(model, "CPU")([np.zeros(1, np.float32)])
    np.testing.assert_array_equal(found[0], _weights("float32", 0))


def test_a_file_that_was_removed_meanwhile(tmp_path: Path, openvino: type[omb.Preset]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("float32"), path)
    loaded = load(path)
    path.unlink()
    with pytest.raises(omb.InvalidModelError, match="was changed or removed"):
        reading.read(loaded.proto, loaded)


def test_the_file_is_no_longer_needed_once_a_model_is_prepared(tmp_path: Path, openvino: type[omb.Preset]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("float32"), path)
    rep = openvino.prepare(path)
    path.write_bytes(bytes(path.stat().st_size))
    for seed, result in enumerate(rep.run(np.zeros(1, np.float32))[:2]):
        np.testing.assert_array_equal(result, _weights("float32", seed))


def test_a_model_as_it_is_stored_is_not_copied(
    tmp_path: Path, openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, read = counted(monkeypatch, reading, "_copy"), counted(monkeypatch, own_file, "by_address")
    path = tmp_path / "model.onnx"
    onnx.save(_model("float32"), path)
    openvino.prepare(path)
    assert (len(copied), len(read)) == (0, 1)


def test_nodes_in_another_order_than_in_the_file(tmp_path: Path, openvino: type[omb.Preset]) -> None:
    made = _model("float32")
    made.graph.node.extend([made.graph.node[0]])
    del made.graph.node[0]
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    rep = openvino.prepare(path)
    for seed, result in enumerate(rep.run(np.zeros(1, np.float32))[:2]):
        np.testing.assert_array_equal(result, _weights("float32", seed))


@pytest.mark.parametrize("mib", [1, 24])
@pytest.mark.parametrize("options", [{}, {"adapt": False}, {"input_shapes": {"x": [3, 256]}}], ids=str)
def test_weights_in_the_file_and_beside_it(
    tmp_path: Path, openvino: type[omb.Preset], mib: int, options: dict[str, Any]
) -> None:
    """Links to those beside it, if they are large, change what the file system says of their file."""
    rng = np.random.default_rng(0)
    own, beside = (rng.standard_normal((256, n)).astype(np.float32) for n in (256, mib * 1024))
    made = models.model(
        [models.node("MatMul", ["x", "own"], ["m"]), models.node("MatMul", ["m", "beside"], ["y"])],
        [models.tensor("x", ["n", 256])],
        [models.tensor("y", None)],
        initializers={"own": own, "beside": beside},
    )
    (tensor,) = (t for t in made.graph.initializer if t.name == "beside")
    (tmp_path / "weights").write_bytes(tensor.raw_data)
    onnx.external_data_helper.set_external_data(tensor, "weights", 0, beside.nbytes)
    tensor.ClearField("raw_data")
    onnx.save(made, tmp_path / "model.onnx")
    x = rng.standard_normal((3, 256)).astype(np.float32)
    y = openvino.prepare(tmp_path / "model.onnx", **options).run(x)[0]
    np.testing.assert_allclose(y, x @ own @ beside, rtol=1e-3, atol=0.05)


@pytest.mark.parametrize("how", ["removed", "emptied", "cut", "overwritten"])
def test_a_file_that_changes_while_it_is_prepared_is_refused(
    tmp_path: Path, openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("float32"), path)
    real = reading._mapped

    def change(file: Path, *given: Any) -> Any:
        if how == "removed":
            path.unlink()
        else:
            path.write_bytes({"emptied": b"", "cut": path.read_bytes()[:5000], "overwritten": b"\xff" * 5000}[how])
        return real(file, *given)

    monkeypatch.setattr(reading, "_mapped", change)
    with pytest.raises(omb.InvalidModelError, match="was changed or removed"):
        openvino.prepare(path)
