# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Gather along an axis that was inserted, in open shapes: neither axis is in the result.

It leaves both nodes out where the indices are constant, as if they were a number: (2, 3) for (2, 1, 3), and for (2, 4, 3) of four indices. A Compress
with a constant condition becomes such a Gather. One index in a list changes nothing: that Gather is written as Identity. Others read the larger of a
value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import (
    flat_for,
    has_fixed_inputs,
    larger,
    maker_before,
    of_kept_types,
    written,
)
from onnx_multi_backend.engines.across_nodes.named_axes import axes_stored
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import is_whole

_CHOOSING = frozenset({"Compress", "Gather"})
_PASSING = frozenset({"Cast", "CastLike", "Dropout", "Identity"})
_PASS, _REASON = "gathers_apart", "OpenVINO would leave out the axis that was inserted before it"


def gathers_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such nodes are left out, or kept apart from what they read; None where there are none."""
    if not contents.has(_CHOOSING) or not contents.has({"Unsqueeze"}) or has_fixed_inputs(contents.model):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict(_found(graph, walked)) for graph in walked.graphs]
    if not any(found):
        return None
    apart = [
        {place: graph.node[place].input[0] for place, idle in own.items() if not idle}
        for graph, own in zip(walked.graphs, found, strict=True)
    ]
    kept = of_kept_types(contents, flat, apart) if any(apart) else [{} for _ in apart]
    places = [
        {place: idle for place, idle in own.items() if idle or place in numbers}
        for own, numbers in zip(found, kept, strict=True)
    ]
    if not any(places):
        return None
    taken, changes = names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, idle: bool, kept: dict[str, str]) -> Iterator[NodeProto]:
        change = "written as Identity" if idle else "kept apart from what it reads"
        changes.append(Adaptation(_PASS, f"{node.op_type} {node.name or node.output[0]!r}", change, _REASON))
        if idle:
            node.op_type = "Identity"
            del node.attribute[:], node.input[1:]
        else:
            name = unused(f"{node.input[0]}{CAST}gathered", taken)
            yield larger(node.input[0], name, name=name)
            node.input[0] = name
        yield node

    return written(flat, places, write, changes)


def _found(graph: GraphProto, walked: Walked) -> Iterator[tuple[int, bool]]:
    """The places of such nodes, and whether they change nothing."""
    for place, node in enumerate(graph.node):
        if node.op_type not in _CHOOSING or canonical(node.domain) or len(node.input) < 2 or not node.output:
            continue
        maker = maker_before(node.input[0], walked.makers, _PASSING)
        if (
            node.input[1] not in walked.fixed
            or maker is None
            or maker.op_type != "Unsqueeze"
            or canonical(maker.domain)
        ):
            continue
        chosen = walked.fixed[node.input[1]] if node.input[1] not in walked.several else None
        is_list = chosen is None or not chosen.data_type or bool(chosen.dims)
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0 if node.op_type == "Gather" else None)
        inserted = axes_stored(maker, walked.fixed) if walked.several.isdisjoint(maker.input[1:]) else None
        if not is_list or axis is None or (inserted is not None and len(inserted) != 1):
            continue
        if inserted is None or (inserted[0] < 0) != (axis < 0):
            yield place, False
        elif inserted[0] == axis:
            yield place, node.op_type == "Gather" and chosen is not None and _is_the_first(chosen)


def _is_the_first(indices: TensorProto) -> bool:
    """Whether a list has one index, which is that of the only element."""
    return list(indices.dims) == [1] and is_whole(indices) and int(numpy_helper.to_array(indices)[0]) in (0, -1)
