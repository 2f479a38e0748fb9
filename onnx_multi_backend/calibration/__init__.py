# SPDX-License-Identifier: Apache-2.0
"""From a float model and data to int8: calibration tables and Q/DQ models, with what they cost in accuracy and gain in speed."""

from onnx_multi_backend.calibration.calibrating import calibrate
from onnx_multi_backend.calibration.checking import Int8Check, check_int8
from onnx_multi_backend.calibration.choosing import QuantizedModel
from onnx_multi_backend.calibration.quantizing import quantize
from onnx_multi_backend.calibration.table import CalibrationTableTensorrt
from onnx_multi_backend.calibration.to_qdq import to_qdq

__all__ = [
    "CalibrationTableTensorrt",
    "Int8Check",
    "QuantizedModel",
    "calibrate",
    "check_int8",
    "quantize",
    "to_qdq",
]
