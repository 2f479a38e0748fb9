# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a GlobalMaxPool that is quantized.

It computes both in one kernel, which makes whole numbers of the maxima before it scales them: 1 of 1.48, in steps of 1/64. (Reductions are kept apart
already, or guarded against NaN.) Nothing is computed in the kernel behind the larger of a value and itself, which is that value. Measured with AVX2.
"""

from __future__ import annotations

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would make whole numbers of the maxima before it quantizes them"


def maxima_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such pools are kept apart from what reads them; None where there are none."""
    if not contents.has({"GlobalMaxPool"}) or not contents.has({"QuantizeLinear"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    found = [
        {place: (0,) for place, node in enumerate(nodes) if node.operator == "GlobalMaxPool"}
        for nodes in walked_of(contents).views
    ]
    return outputs_apart(flat, found, f"{CAST}maxima", "maxima_apart", _REASON)
