# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvino preset with everything allowed to fall back to the CPU EP.

A case that needs nothing of the CPU EP runs as in `test_ort_openvino`: of these a sample runs here. So does one that shares its nodes
with the CPU EP there, unless nodes were rewritten first: of these a quarter runs. Of the others all run.
"""

import functools
import json
import zlib

from backend_test.suite import baseline_path, plug_preset
from onnx_multi_backend.presets.registry import get_preset

SAME_AS = "OrtOpenvino"

#: What falls back is another thing on the plugin, of which there is no baseline.
_PLUGIN = "OrtOpenvino is on the plugin here" if "plugin" in get_preset("OrtOpenvino").availability().engine else None

globals().update(plug_preset("OrtOpenvino", __name__, fallback="full", skip=_PLUGIN))


def runs_otherwise(name: str) -> bool:
    """Whether a case may run in another way, by the baseline without ``fallback="full"``."""
    label = _labels().get(name)
    return zlib.crc32(name.encode()) % 4 == 0 if label == "fallback" else label not in ("native", "adapted")


@functools.cache
def _labels() -> dict[str, str]:
    file = baseline_path("ort_openvino", get_preset("OrtOpenvino").availability())
    labels: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))["cases"] if file.exists() else {}
    return labels
