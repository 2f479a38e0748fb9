# SPDX-License-Identifier: Apache-2.0
"""How fast every way to run a model is on this machine, and which of them to take."""

from onnx_multi_backend.tuning.benching import bench
from onnx_multi_backend.tuning.measurement import Measurement, Outcome
from onnx_multi_backend.tuning.report import Report, read_report
from onnx_multi_backend.tuning.tuned import Tuned
from onnx_multi_backend.tuning.tuner import tune

__all__ = ["Measurement", "Outcome", "Report", "Tuned", "bench", "read_report", "tune"]
