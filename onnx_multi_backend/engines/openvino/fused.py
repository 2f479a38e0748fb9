# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO (2025.4, 2026.4) makes of operators that ONNX Runtime's optimizer fuses."""

from __future__ import annotations

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.site import Site

FUSED = "FusedGemm"
_RIGHT = ("", "Relu", "LeakyRelu")


def find(site: Site) -> Defect | None:
    """What is wrong with a fused node; None where nothing is known."""
    if site.domain != "com.microsoft" or site.attribute("activation", "") in _RIGHT:
        return None
    return Defect("another activation than Relu and LeakyRelu is taken for Relu", wrong=True)
