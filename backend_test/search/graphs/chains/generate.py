# SPDX-License-Identifier: Apache-2.0
"""A random chain with inputs for two runs."""

from __future__ import annotations

import math
import random

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
#: Elements that a result may have.
_MOST = 4096


def random_chain(rng: random.Random) -> Made:
    """Draw a chain; the same random numbers make the same."""
    while True:
        b = Builder(rng, rng.choice(OPSETS), dynamic=rng.random() < 0.6, constants=0.85)
        size = rng.choice((2, 3, 3, 4))
        b.palette[:] = [(size, size)]
        batch = (size, rng.choice((1, 2, 5, 9))) if b.dynamic and b.chance(0.6) else (size, size)
        others = [_sizes(b, size) for _ in range(rng.choice((1, 2, 2, 3, 3, 3, 4)))]
        kind = rng.choices((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8), (0.87, 0.08, 0.05))[0]
        x = b.operand(b.drawn(kind, (batch, *others), "ordinary"), constant=False)
        c = Chain(b, [x])
        if kind == TensorProto.INT8:
            scale = np.float32(0.03)
            c.kept[:] = [c.node("DequantizeLinear", x, b.operand((scale, scale), constant=True))]
        _grow(c, rng.choice((2, 2, 3, 3, 4, 5)))
        if b.nodes:
            return finish(b)


def _sizes(b: Builder, usual: int) -> tuple[int, int]:
    """The sizes of an axis in the two runs; a constant along it needs one for both."""
    size = usual if b.chance(0.85) else b.rng.choice((1, 2, 4, 6))
    return (size, b.rng.choice((1, 2, 5, 8))) if b.dynamic and b.chance(0.07) else (size, size)


def _grow(c: Chain, wanted: int) -> None:
    """Put steps onto the last value."""
    for _ in range(_TRIES):
        before = mark(c.b)
        try:
            made = c.rng.choice(STEPS)(c, c.kept[-1])
            if max(math.prod(shape_of(made.dims or (), run)) for run in (0, 1)) > _MOST:
                raise NoFitError("too large")
        except NoFitError:
            undo(c.b, before)
            continue
        c.kept.append(made)
        wanted -= 1
        if not wanted:
            return
