# SPDX-License-Identifier: Apache-2.0
"""The largest and the smallest of floating-point numbers, for a kernel that skips NaN and begins with a finite number.

What takes such a reduction's place is the same nodes in an ONNX model and in a model that OpenVINO has read: they are chosen here, and
written by `rules/special_values.py` and `engines/openvino/mends/extremes.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from onnx import TensorProto

_T = TensorProto

#: The largest finite number of each type.
LARGEST: Mapping[int, float] = {
    _T.FLOAT: float(np.finfo(np.float32).max),
    _T.DOUBLE: float(np.finfo(np.float64).max),
    _T.FLOAT16: float(np.finfo(np.float16).max),
    _T.BFLOAT16: float.fromhex("0x1.fep127"),
}

Node = TypeVar("Node")


class Writer(Protocol[Node]):
    """What writes nodes in place of one reduction."""

    def write(self, op_type: str, *inputs: Node) -> Node:
        """A node of one of ONNX's operators Less, Mul, Not and Where."""

    def constant(self, value: float, kind: int) -> Node:
        """A finite number of an element type."""

    def special(self, value: float) -> Node:
        """NaN or an infinity, of the type of the numbers."""

    def reduced(self, x: Node) -> Node:
        """The reduction itself of other numbers."""

    def is_number(self, x: Node) -> Node:
        """Which elements are not NaN."""

    def most(self, flags: Node) -> Node:
        """The largest of booleans, as float32, along the same axes."""


def guarded(nodes: Writer[Node], x: Node, kind: int, *, largest: bool) -> Node:
    """The reduction of `x` that is NaN where it reads one, and infinite where it reads infinities alone, or nothing.

    Half of a finite number does not reach the largest one, so that the extreme of the halves tells an infinity from it.

    Parameters
    ----------
    nodes : Writer
    x : node
    kind : int
        The element type.
    largest : bool
        Whether the largest element is asked for, else the smallest.
    """
    plain = nodes.reduced(x)
    halves = nodes.reduced(nodes.write("Mul", x, nodes.constant(0.5, kind)))
    limit = nodes.constant(-LARGEST[kind] if largest else LARGEST[kind], kind)
    finite = nodes.write("Less", limit, halves) if largest else nodes.write("Less", halves, limit)
    result = nodes.write("Where", finite, plain, nodes.special(-math.inf if largest else math.inf))
    count = nodes.most(nodes.write("Not", nodes.is_number(x)))
    any_nan = nodes.write("Less", nodes.constant(0.5, _T.FLOAT), count)
    return nodes.write("Where", any_nan, nodes.special(math.nan), result)
