# SPDX-License-Identifier: Apache-2.0
"""Nodes that are put between a value and what reads it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

_UNARY = ("Abs", "Exp", "Identity", "Neg", "Relu", "Sigmoid", "Softplus", "Tanh", "Transpose")
#: An operator and the numbers that it may compute with.
_BY_NUMBERS: Sequence[tuple[str, Sequence[float]]] = (("Add", (1, -0.5, 0)), ("Max", (0,)), ("Mul", (2, 0.5, -1, 0)))
_BEYOND_ANY_SIZE = 1 << 30


def insert(graph: GraphProto, place: int, read: int, rng: random.Random) -> None:
    """Put one or more nodes before an input of a node.

    Parameters
    ----------
    place, read : int
        Of the node, and of its input.
    """
    count = len(graph.initializer) + len(graph.node)
    nodes = _nodes(graph, graph.node[place].input[read], f"between_{count}", rng)
    graph.node[place].input[read] = nodes[-1].output[0]
    kept = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    del graph.node[:]
    graph.node.extend([*kept[:place], *nodes, *kept[place:]])


def _nodes(graph: GraphProto, x: str, y: str, rng: random.Random) -> list[NodeProto]:
    def stored(value: object) -> str:
        name = f"{y}_{len(graph.initializer)}"
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    kind = rng.choice(("unary", "unary", "number", "number", "twice", "clip", "axis", "half", "flat", "slice"))
    between = f"{y}_inner"
    if kind == "unary":
        return [helper.make_node(rng.choice(_UNARY), [x], [y])]
    if kind == "number":
        operator, numbers = rng.choice(_BY_NUMBERS)
        read = [x, stored(np.float32(rng.choice(numbers)))]
        return [helper.make_node(operator, read if rng.random() < 0.5 else read[::-1], [y])]
    if kind == "twice":
        return [helper.make_node("Add", [x, x], [y])]
    if kind == "clip":
        return [helper.make_node("Clip", [x, stored(np.float32(-1)), stored(np.float32(1))], [y])]
    if kind == "axis":
        axis = stored(np.array([0]))
        return [helper.make_node("Unsqueeze", [x, axis], [between]), helper.make_node("Squeeze", [between, axis], [y])]
    if kind == "half":
        there = helper.make_node("Cast", [x], [between], to=TensorProto.FLOAT16)
        return [there, helper.make_node("Cast", [between], [y], to=TensorProto.FLOAT)]
    if kind == "flat":
        sizes = f"{y}_sizes"
        flat = helper.make_node("Reshape", [x, stored(np.array([-1]))], [between])
        return [helper.make_node("Shape", [x], [sizes]), flat, helper.make_node("Reshape", [between, sizes], [y])]
    bounds = [stored(np.array([number])) for number in (0, _BEYOND_ANY_SIZE, 0)]
    return [helper.make_node("Slice", [x, *bounds], [y])]
