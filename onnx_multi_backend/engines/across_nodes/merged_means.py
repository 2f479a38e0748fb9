# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a mean of means, such as that of a batch behind a GlobalAveragePool.

It takes both at once, along the first axis and the last two, which behind a pool is right in the first run alone. Over the larger of a value and
itself, which is that value, it does not.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, maker_before, of_kept_types
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.walked import walked_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_MEANS = frozenset({"GlobalAveragePool", "ReduceMean"})
#: What is left out between them.
_IDLE = frozenset({"Dropout", "Identity"})
_REASON = "OpenVINO would take both means at once, which behind a pool is right in the first run alone"


def means_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which a mean is kept apart from that of which it is taken; None where there are none."""
    if not contents.has({"ReduceMean"}) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs, makers = walked.graphs, walked.makers
    found = [_of_means(graph, makers) for graph in graphs]
    if not any(found):
        return None
    places = of_kept_types(contents, flat, found)
    change = "kept apart from the mean that it reads"
    return inputs_apart(flat, places, f"{CAST}mean", "means_apart", change, _REASON)


def _of_means(graph: GraphProto, makers: Mapping[str, NodeProto]) -> dict[int, str]:
    """The places of means of means, with what they read."""
    found = {}
    for place, node in enumerate(graph.node):
        if node.op_type in _MEANS and not canonical(node.domain):
            maker = maker_before(node.input[0], makers, _IDLE)
            if maker is not None and maker.op_type in _MEANS and not canonical(maker.domain):
                found[place] = node.input[0]
    return found
