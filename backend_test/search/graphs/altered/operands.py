# SPDX-License-Identifier: Apache-2.0
"""Other operands of a case: sizes, axes and the like of other numbers, inputs of other sizes, inputs left out or known beforehand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from backend_test.search.graphs.altered.attributes import near

#: More whole numbers than these are data, not axes or sizes.
FEW = 10
_FACTORS = (0.5, 0.5, 1.0, 2.0, 0.7, 1.4, -1.0, 3.0)


def other_numbers(model: ModelProto, feeds: dict[str, Any], rng: random.Random) -> None:
    """Another number among a few: of axes, sizes, scales, a limit."""
    few = [n for n, x in feeds.items() if x.dtype.kind in "iuf" and x.ndim <= 1 and 0 < x.size <= FEW]
    if not few:
        return
    name = rng.choice(few)
    array = feeds[name].copy()
    place = rng.randrange(array.size)
    number = array.reshape(-1)[place]
    if array.dtype.kind == "f":
        array.reshape(-1)[place] = number * array.dtype.type(rng.choice(_FACTORS))
    else:
        limits = np.iinfo(array.dtype)
        array.reshape(-1)[place] = min(max(near(int(number), rng), limits.min), limits.max)
    feeds[name] = array


def other_size(model: ModelProto, feeds: dict[str, Any], rng: random.Random) -> None:
    """Another size of an axis, and now and then of all axes of that size."""
    found = [(n, axis) for n, x in feeds.items() for axis in range(x.ndim)]
    if not found:
        return
    name, axis = rng.choice(found)
    before = feeds[name].shape[axis]
    size = max(rng.choice((1, before - 1, before + 1, before + 1, 2 * before)), 0)
    for other, array in feeds.items():
        sizes = list(array.shape)
        if rng.random() < 0.5 or other == name:
            for place, held in enumerate(sizes):
                if (other, place) == (name, axis) or (held == before and rng.random() < 0.7):
                    sizes[place] = size
        if tuple(sizes) != array.shape:
            none = np.full(sizes, "a" if array.dtype == object else 1, array.dtype)
            feeds[other] = np.resize(array, sizes) if array.size else none


def one_operand_less(model: ModelProto, feeds: dict[str, Any], rng: random.Random) -> None:
    """An input is left out, which is an error unless it is optional."""
    found = [(node, place) for node in model.graph.node for place in range(1, len(node.input))]
    if not found:
        return
    node, place = rng.choice(found)
    if place == len(node.input) - 1:
        del node.input[-1]
    else:
        node.input[place] = ""


def stored(model: ModelProto, feeds: dict[str, Any], rng: random.Random) -> None:
    """Make constants of some inputs."""
    for value in list(model.graph.input):
        if value.name in feeds and rng.random() < 0.4 and len(feeds) > 1:
            array = feeds.pop(value.name)
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            model.graph.input.remove(value)
