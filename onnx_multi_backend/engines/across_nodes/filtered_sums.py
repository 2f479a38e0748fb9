# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a sum with a depthwise convolution, of an image of one place.

The sum is computed with the convolution, and so is an operation by channel behind it. Where sizes are open and a run has one image of 1 x 1 places, the convolution is lost: the sum's other operand comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import NodeProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_SUMS = frozenset({"Add", "Sub"})
#: What is computed with the convolution too, on the way to the sum.
_PASSING = frozenset({"Add", "BatchNormalization", "Cast", "Div", "Dropout", "Identity", "Mul", "Sub"})
#: Of an image: the batch and the channels.
_BEFORE_PLACES = 2
_REASON = "OpenVINO would compute the sum with a depthwise convolution and what follows, and lose the convolution of an image of one place"


def filters_summed_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such sums are kept apart from the convolutions; None where there are none."""
    if not contents.has({"Conv"}) or not contents.has(_SUMS):
        return None
    if not any(map(_is_depthwise, contents.of("Conv"))) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict(_found(nodes, walked)) for nodes in walked.views]
    return inputs_apart(
        flat, found, f"{CAST}filtered", "filters_summed_apart", "kept apart from a depthwise convolution", _REASON
    )


def _found(nodes: Sequence[NodeView], walked: Walked) -> Iterator[tuple[int, int]]:
    """The places of these sums, and of their inputs that come of such a convolution."""
    filtered: dict[str, str] = {}  # with the convolution's own result
    for place, node in enumerate(nodes):
        if node.operator == "Conv" and _is_depthwise(node.proto):
            filtered[node.output[0]] = node.output[0]
        read = next((name for name in node.input if name in filtered), None)
        if read is None:
            continue
        computed = [i for i, name in enumerate(node.input) if name and name not in walked.fixed]
        if node.operator in _SUMS and len(computed) > 1:
            if _may_be_one_place(walked.told(filtered[read])):  # which takes long
                yield place, node.input.index(read)
        elif node.operator in _PASSING:
            filtered[node.output[0]] = filtered[read]


def _is_depthwise(node: NodeProto) -> bool:
    return any(a.name == "group" and a.i > 1 for a in node.attribute)


def _may_be_one_place(kind: TypeProto.Tensor | None) -> bool:
    """Whether sizes are open, and an image may have one place."""
    if kind is None or not kind.HasField("shape"):
        return True
    known = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    return None in known and all(size in (None, 1) for size in known[_BEFORE_PLACES:])
