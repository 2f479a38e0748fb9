# SPDX-License-Identifier: Apache-2.0
"""A model given by path is read without its large weights, and computes what it computes with them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.models.own_file import without_weights
from onnx_multi_backend.running import streaming

SIDE = 400  # SIDE * SIDE elements are large in any type, SIDE of them are small
X = np.linspace(-1, 1, SIDE, dtype=np.float32)[None]


def _made(kind: str, elem_type: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """``y = x @ w + b`` with its large weight kept in one of several ways."""
    weights = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) / SIDE**2
    bias = np.arange(SIDE, dtype=np.float32)
    w = numpy_helper.from_array(weights.astype(helper.tensor_dtype_to_np_dtype(elem_type)), "w")
    if kind == "typed":  # values in float_data, which stay where they are
        w = helper.make_tensor("w", TensorProto.FLOAT, [SIDE, SIDE], weights.ravel().tolist())
    nodes = [models.node("MatMul", ["x", "wide"], ["p"]), models.node("Add", ["p", "b"], ["y"])]
    nodes.insert(0, models.node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT))
    initializers = [numpy_helper.from_array(bias, "b")]
    if kind == "constant":
        nodes.insert(0, models.node("Constant", [], ["w"], value=w))
    else:
        initializers.append(w)
    graph = helper.make_graph(
        nodes, "own", [models.tensor("x", (1, SIDE))], [models.tensor("y", (1, SIDE))], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _saved(folder: Path, made: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    onnx.save(made, path)
    return path


@pytest.mark.parametrize("kind", ["initializer", "constant"])
def test_large_weights_are_not_read(tmp_path: Path, kind: str) -> None:
    path = _saved(tmp_path, made := _made(kind))
    small = without_weights(path, path.stat().st_size)
    assert small is not None
    assert len(small.model) < path.stat().st_size - SIDE * SIDE * 4 + 200
    skeleton = onnx.ModelProto.FromString(small.model)
    (left,) = [t for t in _tensors(skeleton) if t.data_location == TensorProto.EXTERNAL]
    place = {e.key: e.value for e in left.external_data}
    start = int(place["offset"])
    raw = path.read_bytes()[start : start + int(place["length"])]
    assert raw == next(t for t in _tensors(made) if t.name == "w").raw_data
    assert [n.op_type for n in skeleton.graph.node] == [n.op_type for n in made.graph.node]


@pytest.mark.parametrize("kind", ["initializer", "constant"])
def test_the_checker_reads_an_input_in_place_of_each_large_weight(tmp_path: Path, kind: str) -> None:
    path = _saved(tmp_path, made := _made(kind))
    small = without_weights(path, path.stat().st_size)
    assert small is not None
    skeleton = onnx.ModelProto.FromString(small.skeleton)
    onnx.checker.check_model(small.skeleton)
    weight = skeleton.graph.input[-1]
    assert (weight.name, weight.type.tensor_type.elem_type) == ("w", TensorProto.FLOAT)
    assert [d.dim_value for d in weight.type.tensor_type.shape.dim] == [SIDE, SIDE]
    assert not [t for t in _tensors(skeleton) if t.name == "w"]
    others = [n for n in made.graph.node if n.op_type != "Constant" or n.output[0] != "w"]
    assert list(skeleton.graph.node) == others


@pytest.mark.parametrize("kind", ["initializer", "constant"])
@pytest.mark.parametrize("fault", ["operator", "type"])
def test_a_fault_beside_large_weights_is_found(tmp_path: Path, kind: str, fault: str) -> None:
    made = _made(kind)
    if fault == "operator":
        made.graph.node[-1].op_type = "Frobnicate"
    else:
        next(t for t in _tensors(made) if t.name == "w").data_type = 99
    path = _saved(tmp_path, made)
    with pytest.raises((omb.InvalidModelError, omb.UnsupportedModelError), match="Frobnicate|99"):
        omb.prepare(path)


def test_nothing_is_left_out_of_other_models(tmp_path: Path) -> None:
    path = _saved(tmp_path, _made("typed"))
    assert without_weights(path, path.stat().st_size) is None
    path.write_bytes(path.read_bytes()[:-1000])
    assert without_weights(path, path.stat().st_size) is None
    path.write_bytes(b"\x0b" * 100_000)  # the start of a group, which no model holds
    assert without_weights(path, path.stat().st_size) is None


@pytest.mark.parametrize("preset", ["OrtCpu", "Openvino"])
@pytest.mark.parametrize("kind", ["initializer", "constant", "typed"])
@pytest.mark.parametrize("opset", [21, onnx.defs.onnx_opset_version()])
def test_a_model_by_path_computes_what_it_does_as_bytes(tmp_path: Path, preset: str, kind: str, opset: int) -> None:
    if not omb.availability()[preset].usable:
        pytest.skip(omb.availability()[preset].reason)
    made = _made(kind)
    made.opset_import[0].version = opset  # the newest makes the adaptation rewrite the model around the weights
    path = _saved(tmp_path, made)
    for adapt in (True, False) if opset == 21 else (True,):
        by_path = omb.prepare(path, preset=preset, adapt=adapt)
        as_bytes = omb.prepare(path.read_bytes(), preset=preset, adapt=adapt)
        np.testing.assert_array_equal(by_path.run(X)["y"], as_bytes.run(X)["y"])
        assert by_path.adaptations == as_bytes.adaptations


@pytest.mark.parametrize("kind", ["initializer", "constant"])
def test_weights_that_a_pass_rewrites_are_read(tmp_path: Path, kind: str) -> None:
    made = _made(kind, TensorProto.FLOAT4E2M1)
    made.opset_import[0].version, made.ir_version = 23, 11
    path = _saved(tmp_path, made)
    by_path, as_bytes = omb.prepare(path), omb.prepare(path.read_bytes())
    np.testing.assert_array_equal(by_path.run(X)["y"], as_bytes.run(X)["y"])


def test_a_file_that_changed_before_its_weights_were_read_is_refused(tmp_path: Path) -> None:
    from onnx_multi_backend.models.loading import load

    loaded = load(path := _saved(tmp_path, _made("initializer")))
    path.write_bytes(path.read_bytes() + b"\x00")
    with pytest.raises(omb.InvalidModelError, match="was changed"):
        loaded.whole()


@pytest.mark.parametrize("kind", ["initializer", "constant"])
@pytest.mark.parametrize("wrong", ["type", "no type", "name"])
def test_weights_that_are_left_out_do_not_hide_an_invalid_model(tmp_path: Path, kind: str, wrong: str) -> None:
    made = _made(kind)
    tensor = next(t for t in _tensors(made) if t.name == "w")
    if wrong == "name":
        data = made.SerializeToString().replace(b"Cast", b"Cas\xff")
    else:
        tensor.data_type = 99 if wrong == "type" else 0
        data = made.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    for model in (path, data):
        with pytest.raises(omb.InvalidModelError):
            omb.prepare(model)
        assert not omb.OrtCpuBackend.is_compatible(model)


@pytest.mark.parametrize("wrong", ["domain", "attributes", "input", "attribute type"])
def test_a_constant_that_is_none_is_read_whole(tmp_path: Path, wrong: str) -> None:
    made = _made("constant")
    node = made.graph.node[0]
    if wrong == "domain":
        node.domain = "some.where"
    elif wrong == "attributes":
        node.attribute.append(helper.make_attribute("value_int", 1))
    elif wrong == "input":
        node.input.append("x")
    else:
        node.attribute[0].type = onnx.AttributeProto.INT
    path = _saved(tmp_path, made)
    assert without_weights(path, path.stat().st_size) is None


def test_a_tensor_that_tells_another_place_is_left_alone(tmp_path: Path) -> None:
    made = _made("initializer")
    tensor = next(t for t in _tensors(made) if t.name == "w")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="other.bin")
    path = _saved(tmp_path, made)
    path.write_bytes(made.SerializeToString())
    assert without_weights(path, path.stat().st_size) is None


@pytest.mark.parametrize(
    "place", [{}, {"offset": "9"}, {"offset": "-5", "length": "640000"}, {"offset": "9", "length": "1"}]
)
def test_a_model_that_points_into_its_own_file_is_held_to_it(tmp_path: Path, place: dict[str, str]) -> None:
    made = _made("initializer")
    made.opset_import[0].version = onnx.defs.onnx_opset_version()
    tensor = next(t for t in _tensors(made) if t.name == "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "model.onnx", **place}.items():
        tensor.external_data.add(key=key, value=value)
    made.doc_string = "x" * SIDE * SIDE * 5
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(omb.InvalidModelError, match="Export it again"):
        omb.prepare(path)


@pytest.mark.parametrize("beside", [False, True])
def test_weights_that_changed_under_an_old_time_are_not_used(
    tmp_path: Path, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "WORTH_A_THREAD", -1.0)  # so that a second session is made
    path, made = tmp_path / "model.onnx", _made("initializer")
    onnx.save(made, path, save_as_external_data=beside, location="weights.bin", size_threshold=0)
    rep = omb.prepare(path)
    weights = tmp_path / "weights.bin" if beside else path
    status, data = weights.stat(), bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    rep.run(X)
    with pytest.raises(omb.InvalidModelError, match="changed or removed"):
        list(rep.run_many([X] * 5))


def _tensors(model: onnx.ModelProto) -> list[TensorProto]:
    constants = [n.attribute[0].t for n in model.graph.node if n.op_type == "Constant"]
    return [*model.graph.initializer, *constants]


#: Where the values of a table lie: in the model, an initializer or a Constant; in a file beside it.
PLACES = ("initializer", "constant", "beside", "constant beside")


def _table(values: np.ndarray, place: str, folder: Path) -> Path:
    """``y = Gather (table, i)`` in a file."""
    table = numpy_helper.from_array(values, "table")
    nodes = [models.node("Gather", ["table", "i"], ["y"])]
    if "constant" in place:
        nodes.insert(0, models.node("Constant", [], ["table"], value=table))
    elem_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    graph = helper.make_graph(
        nodes,
        "own",
        [models.tensor("i", [2], TensorProto.INT64)],
        [models.tensor("y", [2], elem_type)],
        [] if "constant" in place else [table],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = folder / "model.onnx"
    if "beside" in place:
        onnx.save(made, path, save_as_external_data=True, location="w", size_threshold=0, convert_attribute=True)
    else:
        onnx.save(made, path)
    return path


@pytest.mark.parametrize("count", [10, SIDE * SIDE])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["int64", "uint64", "uint32"])
def test_integers_that_openvino_may_not_hold_are_looked_at_wherever_they_lie(
    openvino: type[omb.Preset], kind: str, place: str, count: int, tmp_path: Path
) -> None:
    values = np.arange(count, dtype=kind)
    path = _table(values, place, tmp_path)
    assert openvino.prepare(path).run([np.array([1, count - 1])])[0].tolist() == [1, count - 1]
    values[-1] = 2**32 - 1
    path = _table(values, place, tmp_path)
    with pytest.raises(omb.UnsupportedModelError, match="'table' is beyond what int32 holds"):
        openvino.prepare(path)
    assert omb.presets()["OrtCpu"].prepare(path).run([np.array([1, count - 1])])[0].tolist() == [1, 2**32 - 1]
