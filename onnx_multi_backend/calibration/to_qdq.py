# SPDX-License-Identifier: Apache-2.0
"""A calibration table as Q/DQ nodes of the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from onnx import ModelProto

from onnx_multi_backend.calibration.source import read_float
from onnx_multi_backend.engines.ort import calibration_table, qdq
from onnx_multi_backend.models.given import ModelLike


def to_qdq(model: ModelLike, table: str | os.PathLike[str] | Mapping[str, Any]) -> ModelProto:
    """Write a calibration table into a float model, as TensorRT wants it: TensorRT 11 reads no tables any more.

    Layers that the table has no ranges for stay float.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
    table : CalibrationTableTensorrt, path or mapping
        A path to ONNX Runtime's FlatBuffers table; or a mapping of tensor name to a (low, high) pair or a largest magnitude.

    Raises
    ------
    AlreadyQuantizedError
    CalibrationTableError
        The table is damaged, fits another model, or holds an infinity or a NaN.
    UnsupportedModelError
        The model's opset cannot be raised to 13.
    """
    magnitudes = calibration_table.read("table", table)
    source = read_float(model)
    return qdq.from_magnitudes(source.proto, magnitudes, source.label)
