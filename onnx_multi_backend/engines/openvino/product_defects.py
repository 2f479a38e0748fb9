# SPDX-License-Identifier: Apache-2.0
"""Products whose elements are sums of nothing."""

from __future__ import annotations

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.operators.products import adds_nothing
from onnx_multi_backend.adapt.site import Site


def unwritten(site: Site) -> Defect | None:
    """Source: measured with constants, and with sizes that are known; where a run alone makes them empty, the result is 0."""
    if adds_nothing(site) or (site.is_("ConvTranspose") and 0 in (site.shape(site.input(0)) or ())[2:]):
        return Defect("of sums of nothing, memory that was never written is the result", wrong=True)
    return None
