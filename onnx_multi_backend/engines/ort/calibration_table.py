# SPDX-License-Identifier: Apache-2.0
"""Calibration tables for TensorRT: the ranges of a model's tensors.

The format is ONNX Runtime's: FlatBuffers, ``TrtTable {dict: [KeyValue {key, value}]}``, each value the largest
magnitude of the tensor, as text (source: onnxruntime/core/providers/tensorrt/onnx_ctx_model_helper and
``onnxruntime.quantization.write_calibration_table``).
"""

from __future__ import annotations

import math
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.errors import CalibrationTableError, OptionTypeError
from onnx_multi_backend.models.loading import LoadedModel

#: Removed when the process ends: the execution provider reads its table whenever it builds an engine.
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []

FILE_NAME = "calibration.flatbuffers"

_HOW = "Make one with onnx_multi_backend.calibration.calibrate(model, data)."


def read(name: str, value: Any) -> dict[str, float]:
    """The ranges in a table, as tensor name to largest magnitude.

    Parameters
    ----------
    name : str
        The option's name, for messages.
    value : path or mapping
        A path to a FlatBuffers table; or a mapping of tensor name to a largest magnitude or a (low, high) pair.

    Raises
    ------
    CalibrationTableError
        The file is missing or damaged, or a range is not a finite number.
    """
    if isinstance(value, Mapping):
        ranges = {_tensor_name(k): _magnitude(k, v) for k, v in value.items()}
    elif isinstance(value, (str, os.PathLike)):
        ranges = _read_file(Path(os.fspath(value)))
    else:
        raise OptionTypeError(f"{name} is a path or a mapping of tensor name to range; {value!r} was given. {_HOW}")
    if not ranges:
        raise CalibrationTableError(f"{name} is empty: it holds no range. {_HOW}")
    return ranges


def _tensor_name(name: Any) -> str:
    if not isinstance(name, str):
        raise OptionTypeError(f"A calibration table's keys are tensor names; {name!r} was given.")
    return name


def _magnitude(name: str, value: Any) -> float:
    try:
        pair = isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)
        numbers = [float(v) for v in value] if pair else [float(value)]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) not in (1, 2) or not all(map(math.isfinite, numbers)):
        raise CalibrationTableError(
            f"The range of tensor {name!r} is a largest magnitude or a (low, high) pair; {value!r} was given."
        )
    return max(map(abs, numbers))


def _read_file(path: Path) -> dict[str, float]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CalibrationTableError(f"There is no calibration table '{path}'. {_HOW}") from None
    except OSError as error:
        raise CalibrationTableError(f"The calibration table '{path}' cannot be read: {error.strerror}.") from error
    runtime.load()
    from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable

    try:
        table = TrtTable.GetRootAs(data, 0)
        entries = [table.Dict(i) for i in range(_plausible(table.DictLength(), data))]
        ranges = {e.Key().decode(): float(e.Value().decode()) for e in entries}
    except (struct.error, IndexError, TypeError, ValueError, AttributeError) as error:
        raise CalibrationTableError(
            f"The calibration table '{path}' is damaged or of another format: it is not a FlatBuffers TrtTable. {_HOW}"
        ) from error
    for name, magnitude in ranges.items():
        if not math.isfinite(magnitude):
            raise CalibrationTableError(
                f"The calibration table '{path}' gives tensor {name!r} the range {magnitude}. Calibrate the model again, on inputs "
                "that do not make it infinite or NaN."
            )
    return {name: abs(magnitude) for name, magnitude in ranges.items()}


def _plausible(length: int, data: bytes) -> int:
    if length * 4 > len(data):  # each entry takes at least its offset
        raise ValueError("more entries than bytes")
    return length


def check_fits(ranges: Mapping[str, float], loaded: LoadedModel) -> None:
    """Refuse a table that names no tensor of the model.

    Raises
    ------
    CalibrationTableError
    """
    graph = loaded.proto.graph
    tensors = {v.name for v in graph.input} | {name for node in graph.node for name in node.output}
    if not tensors & ranges.keys():
        some = ", ".join(repr(n) for n in list(ranges)[:3])
        raise CalibrationTableError(
            f"The calibration table fits another model: none of its tensors ({some}, ...) is in {loaded.label}. "
            "Calibrate this model."
        )


def to_bytes(ranges: Mapping[str, float]) -> bytes:
    """The table as ONNX Runtime's FlatBuffers classes write it."""
    import flatbuffers

    runtime.load()
    from onnxruntime.quantization.CalTableFlatBuffers import KeyValue, TrtTable

    builder = flatbuffers.Builder(1024)
    offsets = []
    for name, magnitude in sorted(ranges.items()):
        key, value = builder.CreateString(name), builder.CreateString(str(magnitude))
        KeyValue.KeyValueStart(builder)
        KeyValue.KeyValueAddKey(builder, key)
        KeyValue.KeyValueAddValue(builder, value)
        offsets.append(KeyValue.KeyValueEnd(builder))
    TrtTable.TrtTableStartDictVector(builder, len(offsets))
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    entries = builder.EndVector()
    TrtTable.TrtTableStart(builder)
    TrtTable.TrtTableAddDict(builder, entries)
    builder.Finish(TrtTable.TrtTableEnd(builder))
    return bytes(builder.Output())


def write(ranges: Mapping[str, float], folder: str | None) -> str:
    """Write a table for the execution provider; returns its folder (a new one where none is given)."""
    if folder is None:
        _FOLDERS.append(tempfile.TemporaryDirectory(prefix="onnx_multi_backend_"))
        folder = _FOLDERS[-1].name
    target = Path(folder)
    partial = target / f"{FILE_NAME}.{os.getpid()}"
    partial.write_bytes(to_bytes(ranges))
    partial.replace(target / FILE_NAME)
    return str(target)
