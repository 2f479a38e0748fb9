# SPDX-License-Identifier: Apache-2.0
"""Who keeps entries; each kind has a folder of its own below the cache's."""

from __future__ import annotations

import re

#: Kind by kind what it holds.
KINDS = {
    "ort": "ONNX Runtime's optimized models",
    "openvino": "OpenVINO's compiled models",
    "tensorrt": "TensorRT's engines and timings, kept by ONNX Runtime",
    "ort_openvino": "OpenVINO's compiled models, kept by ONNX Runtime",
}

_ENTRY = re.compile(r"[0-9a-f]{32}")
_PARTIAL = re.compile(r"\.partial-[0-9a-f]{16}")


def is_entry(name: str) -> bool:
    """Whether a folder of this name is an entry."""
    return _ENTRY.fullmatch(name) is not None


def is_partial(name: str) -> bool:
    """Whether a folder of this name is an entry on its way in or out."""
    return _PARTIAL.fullmatch(name) is not None
