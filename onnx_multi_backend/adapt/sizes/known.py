# SPDX-License-Identifier: Apache-2.0
"""What is known of a model's sizes while its nodes are followed."""

from __future__ import annotations

from collections.abc import Collection

from onnx import AttributeProto, NodeProto

from onnx_multi_backend.adapt.intervals.constant_reductions import axes_given
from onnx_multi_backend.adapt.sizes.numbers import Numbers, whole
from onnx_multi_backend.adapt.sizes.size import OPEN, Sizes
from onnx_multi_backend.adapt.walked import NodeView, Walked
from onnx_multi_backend.models.plausible import MOST_AXES


class Known:
    """Sizes by name, and the integers that are computed of them.

    Attributes
    ----------
    walked : Walked
    sizes : dict of str to Sizes
        At first those of the inputs.
    numbers : Numbers
    unknown : set of str
        Names that may stand for several values, or that a run may give others.
    """

    def __init__(self, walked: Walked) -> None:
        self.walked = walked
        values = ((value.name, value.type.tensor_type) for value in walked.flat.graph.input)
        self.sizes: dict[str, Sizes] = {
            name: tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else OPEN for dim in kind.shape.dim
            )
            for name, kind in values
            if kind.HasField("shape")
        }
        self.unknown = {value.name for graph in walked.graphs for value in graph.input} | walked.several
        self.numbers = Numbers(walked, self.unknown)

    def read(self, node: NodeView, place: int) -> Sizes | None:
        """The sizes of what a node reads."""
        return self.sizes.get(node.input[place]) if place < len(node.input) else None

    def listed(self, node: NodeView, place: int) -> Sizes | None:
        """The numbers of the list that a node reads, or as many that are not known."""
        if place >= len(node.input):
            return None
        numbers = self.numbers.of(node.input[place])
        if numbers is not None:
            return numbers
        length = self.sizes.get(node.input[place], ())
        is_known = len(length) == 1 and isinstance(length[0], int) and 0 <= length[0] <= MOST_AXES
        return (None,) * length[0] if is_known and isinstance(length[0], int) else None

    def listed_sizes(self, node: NodeView, place: int) -> Sizes | None:
        """The same where they are sizes: none is below 0."""
        listed = self.listed(node, place)
        return listed and tuple(None if isinstance(size, int) and size < 0 else size for size in listed)

    def axes(self, node: NodeView) -> tuple[int, ...] | None:
        """The axes that a node names; none where it names none."""
        if len(node.input) < 2 or not node.input[1]:
            return axes_given(node.proto, {})
        return whole(self.numbers.of(node.input[1]))


def from_zero(axes: Collection[int], rank: int) -> frozenset[int] | None:
    """Axes counted from the first one; None where there is no such axis."""
    return frozenset(axis % rank for axis in axes) if all(-rank <= axis < rank for axis in axes) else None


def integer(node: NodeProto, name: str, default: int) -> int:
    return next((a.i for a in node.attribute if a.name == name and a.type == AttributeProto.INT), default)
