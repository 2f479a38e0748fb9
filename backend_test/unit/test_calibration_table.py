# SPDX-License-Identifier: Apache-2.0
"""Calibration tables for TensorRT: every form in, and the form that ONNX Runtime's provider reads out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort import calibration_table
from onnx_multi_backend.models.loading import load

RANGES = {"x": (-12.5, -7.25), "xw": (-1.0, 3.5), "y": (0.0, 6.0)}
LARGEST = {"x": 12.5, "xw": 3.5, "y": 6.0}


def _written_by_onnx_runtime(folder: Path, ranges: dict[str, tuple[float, float]] = RANGES) -> Path:
    quantization = pytest.importorskip("onnxruntime.quantization")
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorsData

    data = {k: (np.array(low, np.float32), np.array(high, np.float32)) for k, (low, high) in ranges.items()}
    quantization.write_calibration_table(TensorsData(CalibrationMethod.MinMax, data), str(folder))
    return folder / "calibration.flatbuffers"


def _read_by_onnx_runtime(path: Path) -> dict[str, str]:
    """As the TensorRT provider does: TrtTable, values as text."""
    from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable

    table = TrtTable.GetRootAsTrtTable(path.read_bytes(), 0)
    return {table.Dict(i).Key().decode(): table.Dict(i).Value().decode() for i in range(table.DictLength())}


def test_a_table_of_onnx_runtimes_own_writer_is_read(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    path = _written_by_onnx_runtime(tmp_path)
    for given in (path, str(path)):
        read = calibration_table.read("calibration_table", given)
        assert set(read) == set(RANGES)
        assert (read["xw"], read["y"]) == (pytest.approx(3.5), pytest.approx(6.0))
    # Its writer keeps max(high, low) with the sign; the table has lost the -12.5 of x for good.
    assert read["x"] == pytest.approx(7.25)


@pytest.mark.parametrize(
    "given",
    [
        RANGES,
        {k: list(v) for k, v in RANGES.items()},
        LARGEST,
        {k: -v for k, v in LARGEST.items()},
        {k: np.float32(v) for k, v in LARGEST.items()},
        {k: np.array(v) for k, v in RANGES.items()},
    ],
    ids=["pairs", "lists", "numbers", "signed numbers", "numpy scalars", "arrays"],
)
def test_a_mapping_becomes_largest_magnitudes(given: Any) -> None:
    assert calibration_table.read("calibration_table", given) == pytest.approx(LARGEST)


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "not a number": ({"x": float("nan")}, omb.CalibrationTableError, "tensor 'x'"),
    "infinite": ({"x": (0, float("inf"))}, omb.CalibrationTableError, "tensor 'x'"),
    "a word": ({"x": "wide"}, omb.CalibrationTableError, "'wide' was given"),
    "none": ({"x": None}, omb.CalibrationTableError, "tensor 'x'"),
    "an empty pair": ({"x": ()}, omb.CalibrationTableError, "tensor 'x'"),
    "three numbers": ({"x": (1, 2, 3)}, omb.CalibrationTableError, "pair"),
    "empty": ({}, omb.CalibrationTableError, "is empty"),
    "a number for a name": ({1: 2.0}, omb.OptionTypeError, "1 was given"),
    "a number": (5, omb.OptionTypeError, "path or a mapping.*5 was given.*calibrate"),
    "None": (None, omb.OptionTypeError, "path or a mapping"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_table_is_refused(name: str) -> None:
    given, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        omb.OrtTensorrtInt8Backend(models.linear(), given)


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
def test_a_range_in_a_file_is_a_finite_number(ort_cpu: type[omb.Preset], tmp_path: Path, word: str) -> None:
    path = _written_by_onnx_runtime(tmp_path, {**RANGES, "xw": (float(word), float(word))})
    assert _read_by_onnx_runtime(path)["xw"] == word
    with pytest.raises(omb.CalibrationTableError, match=f"gives tensor 'xw' the range {word}"):
        calibration_table.read("calibration_table", path)


def test_a_missing_table_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        omb.CalibrationTableError, match=r"no calibration table '.*nowhere\.flatbuffers'.*Make one with"
    ):
        omb.OrtTensorrtInt8Backend(models.linear(), tmp_path / "nowhere.flatbuffers")
    with pytest.raises(omb.CalibrationTableError, match="cannot be read: Is a directory"):
        omb.OrtTensorrtInt8Backend(models.linear(), tmp_path)


def test_a_damaged_table_is_refused_whatever_its_bytes(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    whole = _written_by_onnx_runtime(tmp_path).read_bytes()
    path = tmp_path / "damaged"
    rng = np.random.default_rng(11)
    damaged = [b"", b"\0", bytes(64), b"\xff" * 64, b'{"x": 1}', whole[: len(whole) // 2], whole[:12], whole[8:]]
    damaged += [rng.bytes(int(n)) for n in rng.integers(1, 400, 60)]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(omb.CalibrationTableError, match="damaged|empty"):
            calibration_table.read("calibration_table", path)


def test_a_flipped_byte_never_makes_another_error(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    whole = _written_by_onnx_runtime(tmp_path).read_bytes()
    path = tmp_path / "damaged"
    refused = 0
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :])
        try:
            read = calibration_table.read("calibration_table", path)
        except omb.CalibrationTableError:
            refused += 1
        else:
            assert all(np.isfinite(v) for v in read.values()), i
    assert refused > len(whole) // 4


def test_what_is_written_is_what_onnx_runtime_reads(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    folder = calibration_table.write(LARGEST, str(tmp_path))
    assert folder == str(tmp_path)
    written = _read_by_onnx_runtime(tmp_path / calibration_table.FILE_NAME)
    assert {k: float(v) for k, v in written.items()} == LARGEST
    assert calibration_table.read("calibration_table", tmp_path / calibration_table.FILE_NAME) == LARGEST
    assert [p.name for p in tmp_path.iterdir()] == [calibration_table.FILE_NAME]


def test_names_of_every_alphabet_survive(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    ranges = {"a/b:0": 1.0, "层": 0.1, "": 2.0, "x" * 500: 1e-30}
    calibration_table.write(ranges, str(tmp_path))
    assert calibration_table.read("calibration_table", tmp_path / calibration_table.FILE_NAME) == ranges


def test_a_table_of_another_model_is_refused() -> None:
    with pytest.raises(omb.CalibrationTableError, match="fits another model.*'conv1'"):
        calibration_table.check_fits({"conv1": 1.0}, load(models.linear()))
    calibration_table.check_fits({"conv1": 1.0, "xw": 1.0}, load(models.linear()))
