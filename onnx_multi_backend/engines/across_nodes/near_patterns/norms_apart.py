# SPDX-License-Identifier: Apache-2.0
"""Around OpenVINO's (2025.4, 2026.4) one operator for a normalization that is written out with means that lose their axis.

The larger of a value and itself before the mean, which is that value, keeps it from being recognized.
"""

from __future__ import annotations

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.written_norms import OPERATORS, ROOTS, written_norms
from onnx_multi_backend.models.contents import Contents

_REASON = "OpenVINO would normalize as if the mean kept its axis"


def norms_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are computed as they are written; None where there are none."""
    if not all(contents.has({operator}) for operator in OPERATORS) or not contents.has(ROOTS):
        return None
    if not any(norm.reductions for norm in written_norms(contents.nodes)) or (flat := flat_for(contents)) is None:
        return None
    found = []
    for graph in inner_first(flat.graph):
        reduced = {node.output[0] for norm in written_norms(graph.node) for node in norm.reductions}
        found.append({place: 0 for place, node in enumerate(graph.node) if not reduced.isdisjoint(node.output[:1])})
    return inputs_apart(flat, found, f"{CAST}normalized", "norms_apart", "kept from being recognized", _REASON)
