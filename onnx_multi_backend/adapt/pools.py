# SPDX-License-Identifier: Apache-2.0
"""Pooling operators, and what their attributes tell."""

from __future__ import annotations

from onnx import NodeProto

#: Operators with auto_pad and dilations.
POOLS = ("AveragePool", "LpPool", "MaxPool")
#: Padding that follows from the sizes.
SAME = ("SAME_UPPER", "SAME_LOWER")


def dilates_into_auto_pad(node: NodeProto) -> bool:
    """Whether a pooling node has dilations, and padding that follows from them and from the size of its input."""
    given = {a.name: a for a in node.attribute}
    if "auto_pad" not in given or given["auto_pad"].s.decode(errors="replace") not in SAME:
        return False
    return "dilations" in given and any(dilation > 1 for dilation in given["dilations"].ints)
