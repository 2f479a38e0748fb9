# SPDX-License-Identifier: Apache-2.0
"""Pooling operators, and what their attributes tell."""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

#: Operators with auto_pad and dilations.
POOLS = ("AveragePool", "LpPool", "MaxPool")
#: Padding that follows from the sizes.
SAME = ("SAME_UPPER", "SAME_LOWER")


def dilates_into_auto_pad(node: NodeProto) -> bool:
    """Whether a pooling node has dilations, and padding that follows from them and from the size of its input."""
    given = _given(node)
    return _is_same(given) and "dilations" in given and any(dilation > 1 for dilation in given["dilations"].ints)


def gaps_under_auto_pad(node: NodeProto) -> list[int]:
    """How many elements lie between the windows of a pooling node, along each axis; none where its padding does not follow from the size.

    An image of a multiple of the stride would be padded by that many less than none.
    """
    given = _given(node)
    if not _is_same(given) or "kernel_shape" not in given or "strides" not in given:
        return []
    kernel = list(given["kernel_shape"].ints)
    dilations = given["dilations"].ints if "dilations" in given else [1] * len(kernel)
    steps = zip(kernel, dilations, given["strides"].ints, strict=False)
    return [stride - (reach - 1) * dilation - 1 for reach, dilation, stride in steps]


def _given(node: NodeProto) -> dict[str, AttributeProto]:
    return {a.name: a for a in node.attribute}


def _is_same(given: dict[str, AttributeProto]) -> bool:
    return "auto_pad" in given and given["auto_pad"].s.decode(errors="replace") in SAME
