# SPDX-License-Identifier: Apache-2.0
"""Products whose elements are sums of nothing, and windows over images that have no pixels."""

from __future__ import annotations

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.operators.products import adds_nothing
from onnx_multi_backend.adapt.site import Site

#: What makes results of images that have no pixels, of padding alone.
WINDOWS = frozenset(
    {"AveragePool", "Conv", "ConvInteger", "ConvTranspose", "GridSample", "LpPool", "QLinearConv", "RoiAlign"}
)


def unwritten(site: Site) -> Defect | None:
    """Source: measured with constants, and with sizes that are known; where a run alone makes them empty, sums of nothing are 0."""
    if adds_nothing(site):
        return Defect("of sums of nothing, memory that was never written is the result", wrong=True)
    if site.is_(*WINDOWS) and 0 in (site.shape(site.input(0)) or ())[2:]:
        return Defect("of images without pixels, memory that was never written is the result", wrong=True)
    return None
