# SPDX-License-Identifier: Apache-2.0
"""Rewriting a model, exactly, into one that an engine accepts. Knows ONNX, no engine."""

from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.adapt.pipeline import PASSES, Adapted, adapt
from onnx_multi_backend.adapt.work import Adaptation, BoundaryType

__all__ = ["PASSES", "Adaptation", "Adapted", "BoundaryType", "Limits", "adapt"]
