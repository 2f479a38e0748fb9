# SPDX-License-Identifier: Apache-2.0
"""Calibration tables in files: what ONNX Runtime and TensorRT read, and what is damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from onnx_multi_backend.calibration import CalibrationTableTensorrt, calibrate, to_qdq
from onnx_multi_backend.engines.ort import calibration_table, tensorrt
from onnx_multi_backend.models.loading import load

RANGES = {"x": (-12.55, -7.37), "conv 1: out": (-1.0, 3.5), "y": (0.0, 6.0)}
LARGEST = {"x": 12.55, "conv 1: out": 3.5, "y": 6.0}


def test_a_table_is_a_mapping_that_the_preset_takes(tmp_path: Path) -> None:
    table = CalibrationTableTensorrt(RANGES)
    assert dict(table) == RANGES
    assert calibration_table.read("calibration_table", table) == LARGEST


def test_onnx_runtimes_own_classes_read_the_flatbuffers(tmp_path: Path) -> None:
    from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable

    file = tmp_path / "t.flatbuffers"
    CalibrationTableTensorrt(RANGES).save(file)
    read = TrtTable.GetRootAsTrtTable(file.read_bytes(), 0)
    entries = [read.Dict(i) for i in range(read.DictLength())]
    assert {e.Key().decode(): float(e.Value()) for e in entries} == LARGEST
    assert CalibrationTableTensorrt.from_file_flatbuffers(file).magnitudes == LARGEST


def test_the_json_of_onnx_runtimes_writer_is_read_and_written(tmp_path: Path) -> None:
    from onnxruntime.quantization import CalibrationMethod, write_calibration_table
    from onnxruntime.quantization.calibrate import TensorsData

    data = {k: (np.array(low, np.float32), np.array(high, np.float32)) for k, (low, high) in RANGES.items()}
    write_calibration_table(TensorsData(CalibrationMethod.MinMax, data), str(tmp_path))
    theirs = CalibrationTableTensorrt.from_file_json(tmp_path / "calibration.json")
    for name, pair in RANGES.items():
        assert theirs[name] == pytest.approx(pair, rel=1e-6)
    CalibrationTableTensorrt(RANGES).save(tmp_path / "own.json")
    assert dict(CalibrationTableTensorrt.from_file_json(tmp_path / "own.json")) == RANGES
    # Theirs keeps the highest value with its sign in the other files: the 12.55 of x is lost. Mended upstream? Then say so in the docs.
    written = CalibrationTableTensorrt.from_file_flatbuffers(tmp_path / "calibration.flatbuffers")
    assert written.magnitudes["x"] == pytest.approx(7.37)


def test_the_cache_is_what_tensorrt_writes(tmp_path: Path) -> None:
    file = tmp_path / "t.cache"
    CalibrationTableTensorrt({"x": (-127.0, 3.0), "a: b": (0.0, 1.0)}).save(file)
    one = struct.pack(">f", 1 / 127).hex()
    assert file.read_bytes() == f"TRT-100000-EntropyCalibration2\nx: 3f800000\na: b: {one}\n".encode()
    assert CalibrationTableTensorrt.from_file_cache(file).magnitudes == pytest.approx({"x": 127.0, "a: b": 1.0})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.cache", b"", "TRT-"),
        ("t.cache", b"TRT-8601-EntropyCalibration2\nx: 3f80\n", "by its line 'x: 3f80'"),
        ("t.cache", b"TRT-8601-EntropyCalibration2\nx: 7f800000\n", "tensor 'x'.*not finite"),
        ("t.cache", b"\xff\xfe", "damaged"),
        ("t.json", b"[]", "damaged"),
        ("t.json", b'{"data": {"x": {"lowest": 1}}}', "damaged"),
        ("t.json", b'{"data": {"x": {"lowest": 0, "highest": NaN}}}', "'x' is not finite"),
        ("t.json", b'{"data": {"x": {"lowest": 2, "highest": 1}}}', "'x' is empty"),
        ("t.json", b'{"data": {}}', "one range at least"),
        ("t.flatbuffers", b"\x00\x01", "damaged"),
    ],
)
def test_a_damaged_file_is_told(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    read = getattr(CalibrationTableTensorrt, f"from_file_{file.suffix[1:]}")
    with pytest.raises(omb.CalibrationTableError, match=message):
        read(file)
    file.unlink()
    with pytest.raises(omb.CalibrationTableError, match="There is no calibration table"):
        read(file)


def test_what_cannot_be_saved_leaves_what_was_there(tmp_path: Path) -> None:
    table = CalibrationTableTensorrt(RANGES)
    with pytest.raises(omb.OptionError, match=r"\.flatbuffers, \.json, \.cache file"):
        table.save(tmp_path / "t.txt")
    with pytest.raises(omb.OptionError, match="cannot be written"):
        table.save(tmp_path / "nowhere" / "t.json")
    assert list(tmp_path.iterdir()) == []


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("opset", [11, 20])
def test_a_table_becomes_qdq_nodes_as_tensorrt_wants_them(opset: int) -> None:
    net = nets.convolutional(opset=opset)
    made = to_qdq(net, calibrate(net, nets.images()))
    onnx.checker.check_model(made, full_check=True)
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    pairs = [node for node in made.graph.node if node.op_type == "QuantizeLinear"]
    assert len(pairs) >= 2 * 5  # each layer's input and weight
    for node in pairs:
        zero = constants[node.input[2]]
        assert zero.dtype == np.int8
        assert not zero.any()
    conv = next(node for node in made.graph.node if node.op_type == "Conv")
    assert conv.input[2] in constants  # the bias is float
    assert constants[conv.input[2]].dtype == np.float32
    x = next(nets.images())
    cosine = _cosine(omb.OrtCpuBackend.run_model(net, x)[0], omb.OrtCpuBackend.run_model(made, x)[0])
    assert cosine > 0.99


def test_layers_without_a_range_stay_float() -> None:
    net = nets.convolutional()
    table = dict(calibrate(net, nets.images()))
    del table["c1"]
    made = to_qdq(net, table)
    by_name = {node.name: node for node in made.graph.node}
    assert by_name["conv1"].input[1] == "w1"
    assert by_name["conv0"].input[1] != "w0"


def test_a_table_of_another_model_is_refused() -> None:
    with pytest.raises(omb.CalibrationTableError, match="fits another model.*no range for"):
        to_qdq(nets.convolutional(), {"another": (0.0, 1.0)})


def test_with_tensorrt_11_the_model_carries_what_options_did(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nets.convolutional()
    table = calibrate(net, nets.images())
    int8, best = (omb.presets()[name] for name in ("OrtTensorrtInt8", "OrtTensorrtFloatOptim"))
    loaded = load(net)
    settings = {"calibration_table": table.magnitudes, "cache_dir": False, "trt_fp16_enable": True}
    device = int8.family.parse("CUDA:0", "t")
    before = int8._provider_options(settings, device, None)
    assert before["trt_int8_enable"] == "True"
    assert int8._handed_over(settings, loaded) is loaded
    monkeypatch.setattr(tensorrt, "linked", lambda: 11)
    assert not {"trt_int8_enable", "trt_fp16_enable", "trt_int8_calibration_table_name"} & set(
        int8._provider_options(settings, device, loaded)
    )
    assert "QuantizeLinear" in operators(int8._handed_over(settings, loaded).proto)
    half = best._handed_over({}, loaded).proto
    assert {t.data_type for t in half.graph.initializer if t.name.startswith("w")} == {onnx.TensorProto.FLOAT16}
    assert half.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert "trt_fp16_enable" not in best._provider_options({"cache_dir": False}, device, None)
    x = next(nets.images())
    np.testing.assert_allclose(
        omb.OrtCpuBackend.run_model(half, x)[0], omb.OrtCpuBackend.run_model(net, x)[0], atol=0.02
    )


def test_a_model_without_layers_is_told() -> None:
    with pytest.raises(omb.CalibrationTableError, match="has no Conv"):
        to_qdq(models.relu(), {"x": 1.0})


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.ravel() @ b.ravel() / np.linalg.norm(a) / np.linalg.norm(b))
