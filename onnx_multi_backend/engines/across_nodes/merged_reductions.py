# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO makes of a reduction of what the same one made, which it takes both at once.

- Of a mean of means, such as that of a batch behind a GlobalAveragePool, along the first axis and the last two (2025.4, 2026.4), which behind a pool is right in
  the first run alone.
- 2025.4 counts negative axes of the second from the end of what the first reads, though the first drops its own: (2, 4) for (2, 3).

Over the larger of a value and itself, which is that value, it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, maker_before, of_kept_types
from onnx_multi_backend.engines.across_nodes.named_axes import axes_stored
from onnx_multi_backend.engines.across_nodes.reduced_axes import drops_axes
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_MEANS = frozenset({"GlobalAveragePool", "ReduceMean"})
#: What is left out between them.
_IDLE = frozenset({"Dropout", "Identity"})
#: What may change nothing.
_UNCHANGING = frozenset({"Cast", "Expand", "Flatten", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"})
#: What OpenVINO writes with a sum.
_SUMS = frozenset({"ReduceLogSum", "ReduceLogSumExp", "ReduceSum", "ReduceSumSquare"})
_REASON = "OpenVINO would take both means at once, which behind a pool is right in the first run alone"
_COUNTED = "OpenVINO would count negative axes from the end of what the reduction before it reads"


def means_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which a mean is kept apart from that of which it is taken; None where there are none."""
    if not contents.has({"ReduceMean"}) or (flat := flat_for(contents)) is None:
        return None
    found = _of_others(walked_of(contents), _is_mean, lambda mean, read: _is_mean(read))
    if not any(found):
        return None
    places = of_kept_types(contents, flat, found)
    change = "kept apart from the mean that it reads"
    return inputs_apart(flat, places, f"{CAST}mean", "means_apart", change, _REASON)


def axes_counted_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which reductions along negative axes are kept apart from those before them that drop axes; None where there are none."""
    if not any(map(drops_axes, contents.nodes)) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)

    def counts_wrongly(node: NodeProto, read: NodeProto) -> bool:
        alike = node.op_type == read.op_type or {node.op_type, read.op_type} <= _SUMS
        if not alike or not drops_axes(read):
            return False
        axes = axes_stored(node, walked.fixed)
        return axes is None or any(axis < 0 for axis in axes)

    found = _of_others(walked, drops_axes, counts_wrongly, _IDLE | _UNCHANGING)
    if not any(found):
        return None
    places = of_kept_types(contents, flat, found)
    change = "kept apart from the reduction that it reads"
    return inputs_apart(flat, places, f"{CAST}reduced", "axes_counted_apart", change, _COUNTED)


def _is_mean(node: NodeProto) -> bool:
    return node.op_type in _MEANS and not canonical(node.domain)


def _of_others(
    walked: Walked,
    may_be_last: Callable[[NodeProto], bool],
    is_meant: Callable[[NodeProto, NodeProto], bool],
    between: Collection[str] = _IDLE,
) -> list[dict[int, str]]:
    """The places of reductions of what others made, with what they read, for each graph; `is_meant` is asked about both."""

    def reads(node: NodeProto) -> bool:
        if not may_be_last(node):
            return False
        maker = maker_before(node.input[0], walked.makers, between)
        return maker is not None and is_meant(node, maker)

    return [{place: node.input[0] for place, node in enumerate(graph.node) if reads(node)} for graph in walked.graphs]
