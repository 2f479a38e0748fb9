# SPDX-License-Identifier: Apache-2.0
"""Every tensor of a model is held to the model's folder, wherever in the model it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, SparseTensorProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.ones((1, 4), np.float32)


def _external(location: str) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "64")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def _function(default: AttributeProto) -> FunctionProto:
    nodes = [helper.make_node("Constant", [], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    nodes[0].attribute.add(name="value", type=AttributeProto.TENSOR, ref_attr_name="v")
    imports = [helper.make_opsetid("", models.OPSET)]
    return helper.make_function("d", "F", ["x"], ["y"], nodes, imports, attribute_protos=[default])


def _default(location: str) -> ModelProto:
    default = AttributeProto(name="v", type=AttributeProto.TENSOR, t=_external(location))
    call = [models.node("F", ["x"], ["y"], domain="d")]
    x, y = (models.tensor(name, [1, 4]) for name in "xy")
    return models.model(call, [x], [y], opsets={"d": 1}, functions=[_function(default)])


def _default_of_another_type(location: str) -> ModelProto:
    made = _default(location)
    made.functions[0].attribute_proto[0].type = AttributeProto.INT
    return made


def _default_in_a_graph(location: str) -> ModelProto:
    made = _default(location)
    default = made.functions[0].attribute_proto[0]
    default.ClearField("t")
    default.type = AttributeProto.GRAPH
    default.g.initializer.append(_external(location))
    return made


def _sparse_default(location: str) -> ModelProto:
    made = _default(location)
    default = made.functions[0].attribute_proto[0]
    default.ClearField("t")
    default.type = AttributeProto.SPARSE_TENSOR
    default.sparse_tensor.CopyFrom(SparseTensorProto(values=_external(location), dims=[4, 4]))
    return made


def _training(location: str) -> ModelProto:
    made = models.relu([1, 4])
    made.training_info.add().initialization.initializer.append(_external(location))
    return made


HIDDEN: dict[str, Callable[[str], ModelProto]] = {
    "the default of a function's attribute": _default,
    "a default of another type": _default_of_another_type,
    "a graph that is a default": _default_in_a_graph,
    "a sparse default": _sparse_default,
    "training_info": _training,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model's folder; the working directory is another, and each has a file of the same name."""
    for place, value in (("model", 1), ("cwd", 1000)):
        (tmp_path / place).mkdir()
        np.full(16, value, np.float32).tofile(tmp_path / place / "w.bin")
    np.full(16, 5000, np.float32).tofile(tmp_path / "w.bin")
    monkeypatch.chdir(tmp_path / "cwd")
    return tmp_path / "model"


@pytest.mark.parametrize("where", HIDDEN)
def test_bytes_read_no_file(preset: type[omb.Preset], folder: Path, where: str) -> None:
    made = HIDDEN[where]("w.bin")
    for given in (made, made.SerializeToString()):
        with pytest.raises(omb.InvalidModelError, match="has no folder"):
            preset.prepare(given)


@pytest.mark.parametrize("where", HIDDEN)
def test_nothing_outside_the_folder_is_read(preset: type[omb.Preset], folder: Path, where: str) -> None:
    path = folder / "m.onnx"
    path.write_bytes(HIDDEN[where]("../w.bin").SerializeToString())
    with pytest.raises(omb.InvalidModelError, match="outside the model's folder"):
        preset.prepare(path)


def test_a_default_in_the_folder_is_read(ort_cpu: type[omb.Preset], folder: Path) -> None:
    path = folder / "m.onnx"
    path.write_bytes(_default("w.bin").SerializeToString())
    np.testing.assert_array_equal(ort_cpu.prepare(path).run(X)[0], np.full((1, 4), 4, np.float32))


def test_no_file_names_an_address_in_memory(engine: type[omb.Preset], tmp_path: Path) -> None:
    place = tmp_path / "*" / "_ORT_MEM_ADDR_"
    place.mkdir(parents=True)
    (place / "*").write_bytes(bytes(64))
    path = tmp_path / "m.onnx"
    path.write_bytes(_default("*/_ORT_MEM_ADDR_/*").SerializeToString())
    with pytest.raises(omb.InvalidModelError, match="an address in memory"):
        engine.prepare(path)
