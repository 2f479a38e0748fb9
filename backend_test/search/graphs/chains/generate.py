# SPDX-License-Identifier: Apache-2.0
"""A random chain with inputs for two runs."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs.builder import Builder, NoFitError, shape_of
from backend_test.search.graphs.chains import patterns  # noqa: F401
from backend_test.search.graphs.chains.chain import Chain
from backend_test.search.graphs.chains.steps import STEPS
from backend_test.search.graphs.generate import Made, finish, mark, undo

OPSETS = (13, 17, 18, 20, 21, 23)
#: Draws of steps before a chain is as long as it gets.
_TRIES = 40


class _Sizes(NamedTuple):
    """The sizes of axes.

    Attributes
    ----------
    usual, others : tuple of int
        Of most axes of a chain, and of the rest.
    most : int
        Elements that a result may have.
    """

    usual: tuple[int, ...]
    others: tuple[int, ...]
    most: int


_SMALL = _Sizes((2, 3, 3, 4), (1, 2, 4, 6), 4096)
#: Around the blocks of 8 and 16 channels that engines compute in.
_WIDE = _Sizes((7, 8, 9, 16, 16, 17, 32), (1, 3, 8, 16, 24, 33), 70_000)
_MOST_OF_FOUR = 16


def random_chain(rng: random.Random, *, wide: bool = False) -> Made:
    """Draw a chain; the same random numbers make the same.

    Parameters
    ----------
    wide : bool
        In sizes around the blocks that engines compute in, instead of small ones.
    """
    sizes = _WIDE if wide else _SMALL
    while True:
        b = Builder(rng, rng.choice(OPSETS), dynamic=rng.random() < 0.6, constants=0.85)
        size = rng.choice(sizes.usual)
        b.palette[:] = [(size, size)]
        batch = (size, rng.choice((1, 2, 5, 9))) if b.dynamic and b.chance(0.6) else (size, size)
        more = rng.choice((1, 2, 2, 3, 3, 3, 4))
        others = [_sizes(b, min(size, _MOST_OF_FOUR) if more >= 3 else size, sizes) for _ in range(more)]
        kind = rng.choices((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8), (0.87, 0.08, 0.05))[0]
        if max(math.prod(shape_of((batch, *others), run)) for run in (0, 1)) > sizes.most:
            continue
        x = b.operand(b.drawn(kind, (batch, *others), "ordinary"), constant=False)
        c = Chain(b, [x], sizes.most)
        if kind == TensorProto.INT8:
            scale = np.float32(0.03)
            c.kept[:] = [c.node("DequantizeLinear", x, b.operand((scale, scale), constant=True))]
        _grow(c, rng.choice((2, 2, 3, 3, 4, 5)))
        if b.nodes:
            return finish(b)


def _sizes(b: Builder, usual: int, sizes: _Sizes) -> tuple[int, int]:
    """The sizes of an axis in the two runs; a constant along it needs one for both."""
    size = usual if b.chance(0.85) else b.rng.choice(sizes.others)
    return (size, b.rng.choice((1, 2, 5, 8))) if b.dynamic and b.chance(0.07) else (size, size)


def _grow(c: Chain, wanted: int) -> None:
    """Put steps onto the last value."""
    for _ in range(_TRIES):
        before = mark(c.b)
        try:
            made = c.rng.choice(STEPS)(c, c.kept[-1])
            if max(math.prod(shape_of(made.dims or (), run)) for run in (0, 1)) > c.most:
                raise NoFitError("too large")
        except NoFitError:
            undo(c.b, before)
            continue
        c.kept.append(made)
        wanted -= 1
        if not wanted:
            return
