# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a reduction that keeps its axes, behind what inserts an axis of one element after them.

In fixed shapes it reduces first, and inserts the axis where it belongs if the reduced ones were dropped: (1, 1, 3, 4) for (1, 3, 1, 4). Nothing
is moved over the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, has_fixed_inputs, inputs_apart, of_kept_types
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC, PASSING
from onnx_multi_backend.engines.across_nodes.named_axes import axes_stored
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_INSERTING = frozenset({"Reshape", "Unsqueeze"})
#: What it may be moved over.
_PASSING = (PASSING | ARITHMETIC | {"Transpose"}) - _INSERTING
_REASON = "OpenVINO would insert an axis before it where that belongs if it dropped its axes"


def insertions_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these reductions are kept apart from what they read; None where there are none."""
    if not contents.has(_INSERTING) or not any(map(_keeps_axes, contents.nodes)):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    makers, constants = walked.makers, walked.fixed
    found = [_behind_insertions(graph, makers, constants) for graph in graphs]
    if not any(found):
        return None
    fixed = has_fixed_inputs(contents.model)

    def is_meant(node: NodeProto) -> bool:
        axes = axes_stored(node, constants) or (0,)
        return set(axes) != {-1} and _has_one_behind(walked.types.get(node.input[0]), axes, fixed=fixed)

    found = [
        {place: name for place, name in own.items() if is_meant(graph.node[place])}
        for graph, own in zip(graphs, found, strict=True)
    ]
    places = of_kept_types(contents, flat, found)
    change = "kept apart from what it reads"
    return inputs_apart(flat, places, f"{CAST}inserted", "insertions_apart", change, _REASON)


def _keeps_axes(node: NodeProto) -> bool:
    reduces = isinstance(node.op_type, str) and node.op_type.startswith("Reduce") and not canonical(node.domain)
    return reduces and bool(node.input) and all(a.i for a in node.attribute if a.name == "keepdims")


def _behind_insertions(
    graph: GraphProto, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto | None]
) -> dict[int, str]:
    """The places of reductions that keep axes behind what may insert some, with what they read."""

    def is_behind(name: str) -> bool:
        while (maker := makers.get(name)) is not None and not canonical(maker.domain):
            if maker.op_type in _INSERTING:
                return True
            read = [other for other in maker.input if other and other not in constants]
            if maker.op_type not in _PASSING or len(set(read)) != 1:
                return False
            name = read[0]
        return False

    return {
        place: node.input[0] for place, node in enumerate(graph.node) if _keeps_axes(node) and is_behind(node.input[0])
    }


def _has_one_behind(kind: TypeProto.Tensor | None, axes: Sequence[int], *, fixed: bool) -> bool:
    """Whether there may be an axis of one element behind one of these; `fixed`: all shapes are known to OpenVINO."""
    if kind is None or not kind.HasField("shape"):
        return fixed
    rank = len(kind.shape.dim)
    behind = kind.shape.dim[min(axis + rank if axis < 0 else axis for axis in axes) + 1 :]
    if not all(dim.HasField("dim_value") for dim in kind.shape.dim):
        return fixed and bool(behind)
    return any(dim.dim_value == 1 for dim in behind)
