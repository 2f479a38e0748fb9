# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a sum with a convolution.

The sum is computed with the convolution, and so is an operation by channel behind it. Where sizes are open, a depthwise convolution is lost in a run
of one image of 1 x 1 places: the sum's other operand comes out. So is one that reads a single channel, of small images. Where one operand alone turns
out to have no elements, the results of the run before come out, and the next run may be wrong too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from onnx import NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.emptied import EMPTYING, emptied
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_CONVOLUTIONS = ("Conv", "ConvInteger")
_SUMS = frozenset({"Add", "Sub", "Sum"})
#: What is computed with the convolution too, on the way to the sum.
_PASSING = frozenset({"Add", "BatchNormalization", "Cast", "Div", "Dropout", "Identity", "Mul", "Sub"})
#: Of an image: the batch and the channels.
_BEFORE_PLACES = 2
_REASON = "OpenVINO would compute the sum with the convolution, and lose that of an image of one place, or give what the run before gave for no elements"


def filters_summed_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such sums are kept apart from the convolutions; None where there are none."""
    if not contents.has(_CONVOLUTIONS) or not contents.has(_SUMS):
        return None
    empties, convolutions = contents.has(EMPTYING), contents.of(*_CONVOLUTIONS)
    if not (
        empties or any(_is_depthwise(node) or _reads_one_channel(node, contents.constants) for node in convolutions)
    ):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    nothing = emptied(walked.graphs) if empties else frozenset()
    found = [dict(_found(nodes, walked, nothing)) for nodes in walked.views]
    made = inputs_apart(
        flat, found, f"{CAST}filtered", "filters_summed_apart", "kept apart from a convolution", _REASON
    )
    again = filters_summed_apart(Contents(made.model)) if made is not None else None  # both operands may be such
    if made is None or again is None:
        return made
    return Rewritten(again.model, (*made.changes, *again.changes), made.added | again.added)


def _found(nodes: Sequence[NodeView], walked: Walked, nothing: Set[str]) -> Iterator[tuple[int, int]]:
    """The places of these sums, and of their inputs that come of such a convolution."""
    filtered: dict[str, NodeView] = {}  # with the convolution
    for place, node in enumerate(nodes):
        if node.operator in _CONVOLUTIONS:
            filtered[node.output[0]] = node
        read = next((name for name in node.input if name in filtered), None)
        if read is None:
            continue
        computed = [i for i, name in enumerate(node.input) if name and name not in walked.fixed]
        if node.operator in _SUMS and len(computed) > 1:
            alone = len({name in nothing for name in node.input}) > 1
            one_channel = _reads_one_channel(filtered[read].proto, walked.fixed) or _may_read_one(
                filtered[read], walked
            )
            if alone or one_channel or _is_depthwise(filtered[read].proto):
                kinds = [walked.told(name) for name in (filtered[read].output[0], *node.input)]  # which takes long
                if _may_be_one_place(kinds[0]) or ((alone or one_channel) and any(map(_is_open, kinds))):
                    yield place, node.input.index(read)
        elif node.operator in _PASSING:
            filtered[node.output[0]] = filtered[read]


def _is_depthwise(node: NodeProto) -> bool:
    return any(a.name == "group" and a.i > 1 for a in node.attribute)


def _reads_one_channel(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> bool:
    """Whether its constant filters are for one channel, which it reads alone."""
    weights = constants.get(node.input[1]) if len(node.input) > 1 else None
    return weights is not None and len(weights.dims) > 1 and weights.dims[1] == 1 and not _is_depthwise(node)


def _may_read_one(node: NodeView, walked: Walked) -> bool:
    """The same, where its filters are computed of constants."""
    if walked.fixed.get(node.input[1], node) is not None or _is_depthwise(node.proto):
        return False
    kind = walked.told(node.input[1])
    return kind is None or not kind.HasField("shape") or kind.shape.dim[1].dim_value in (0, 1)


def _is_open(kind: TypeProto.Tensor | None) -> bool:
    return kind is None or not kind.HasField("shape") or not all(dim.HasField("dim_value") for dim in kind.shape.dim)


def _may_be_one_place(kind: TypeProto.Tensor | None) -> bool:
    """Whether sizes are open, and an image may have one place."""
    if kind is None or not kind.HasField("shape"):
        return True
    known = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    return None in known and all(size in (None, 1) for size in known[_BEFORE_PLACES:])
