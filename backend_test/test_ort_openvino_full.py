# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvino preset with everything allowed to fall back to the CPU EP.

A case that needs nothing of the CPU EP runs as in `test_ort_openvino`: of these a sample runs here, of the others all.
"""

import functools
import json

from backend_test.suite import baseline_path, plug_preset
from onnx_multi_backend.presets.registry import get_preset

SAME_AS = "OrtOpenvino"

globals().update(plug_preset("OrtOpenvino", __name__, fallback="full"))


def runs_otherwise(name: str) -> bool:
    """Whether a case does not run wholly on the execution provider, by the baseline without ``fallback="full"``."""
    return _labels().get(name) not in ("native", "adapted")


@functools.cache
def _labels() -> dict[str, str]:
    file = baseline_path("ort_openvino", get_preset("OrtOpenvino").availability())
    labels: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))["cases"] if file.exists() else {}
    return labels
