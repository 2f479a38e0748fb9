# SPDX-License-Identifier: Apache-2.0
"""A chain in the making, and what its steps draw their operands with."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto

from backend_test.search.graphs.builder import Builder, Dims, NoFitError, Value, static


class Chain(NamedTuple):
    """The graph so far, and the results that a later step may read again.

    Attributes
    ----------
    most : int
        Elements that a value may have.
    """

    b: Builder
    kept: list[Value]
    most: int

    @property
    def rng(self) -> random.Random:
        return self.b.rng

    def dims(self, x: Value) -> Dims:
        """The shape of a value, in both runs."""
        if x.dims is None:
            raise NoFitError(f"the shape of {x.name} is not known")
        return x.dims

    def fixed(self, x: Value, axis: int) -> int:
        """A size that both runs agree on, for a constant to be as long."""
        one, two = self.dims(x)[axis]
        if one != two or one == 0:
            raise NoFitError("the runs differ there")
        return one

    def rank(self, x: Value, *among: int) -> int:
        """The rank of a value, which is one of these where some are named."""
        rank = len(self.dims(x))
        if among and rank not in among:
            raise NoFitError("another rank")
        return rank

    def node(self, op_type: str, *inputs: Value | None, outputs: int = 1, **attributes: object) -> Value:
        """The first result of a new node."""
        if not onnx.defs.has(op_type, self.b.opset, ""):
            raise NoFitError(f"the opset has no {op_type}")
        return self.b.node(op_type, inputs, outputs, **attributes)[0]

    def along(self, op_type: str, x: Value, axes: Sequence[int], **attributes: object) -> Value:
        """A new node with axes, which are an attribute or an input as the opset has it."""
        if "axes" in onnx.defs.get_schema(op_type, self.b.opset, "").attributes:
            return self.node(op_type, x, axes=list(axes), **attributes)
        return self.node(op_type, x, self.whole(axes), **attributes)

    def whole(self, numbers: Sequence[int] | int) -> Value:
        """A constant of int64; of one number, without axes."""
        array = np.array(numbers, np.int64)
        return self.b.operand((array, array), constant=True)

    def tensor(self, x: Value, *sizes: int, data: Callable[[np.ndarray], np.ndarray] | None = None) -> Value:
        """A constant of the type of a value, seldom an input."""
        return self.of_kind(x.kind, *sizes, data=data)

    def of_kind(
        self, kind: int, *sizes: int, data: Callable[[np.ndarray], np.ndarray] | None = None, share: float = 0.9
    ) -> Value:
        """A constant of a type, seldom an input: with this share a constant."""
        if math.prod(sizes) > self.most:
            raise NoFitError("too large")
        drawn = self.b.drawn(kind, static(*sizes), "ordinary")
        if data is not None:
            drawn = np.asarray(data(drawn[0]), drawn[0].dtype), np.asarray(data(drawn[1]), drawn[1].dtype)
        return self.b.operand(drawn, constant=self.b.chance(share))

    def scalar(self, x: Value, number: float) -> Value:
        """A constant without axes of the type of a value."""
        array = np.array(number, np.float16 if x.kind == TensorProto.FLOAT16 else np.float32)
        return self.b.operand((array, array), constant=True)

    def along_one_axis(self, x: Value) -> tuple[int, ...]:
        """The shape of an operand that holds a number for each element of one axis, or for all, or each."""
        rank = self.rank(x)
        how = self.rng.choice(("axis", "axis", "axis", "last", "one", "all", "from"))
        if how == "one" or not rank:
            return self.rng.choice(((), (1,)))
        if how == "last":
            return (self.fixed(x, -1),)
        if how == "all":
            return tuple(self.fixed(x, i) for i in range(rank))
        axis = self.rng.randrange(rank)
        lead = self.rng.choice((0, axis)) if self.b.chance(0.3) else 0
        if how == "from":
            return (1,) * (axis - lead) + tuple(self.fixed(x, i) for i in range(axis, rank))
        return (1,) * (axis - lead) + (self.fixed(x, axis),) + (1,) * (rank - axis - 1)

    def weight(self, x: Value, *sizes: int) -> Value:
        """A weight: a constant, or what is made of one as exporters and quantizers make it."""
        how = self.rng.choice(("plain",) * 6 + ("transposed", "reshaped", "dequantized", "dequantized", "scaled"))
        if how == "transposed":
            order = list(range(len(sizes)))
            self.rng.shuffle(order)
            found = self.of_kind(x.kind, *(sizes[order.index(i)] for i in range(len(sizes))), share=1.0)
            return self.node("Transpose", found, perm=order)
        if how == "reshaped":
            return self.node("Reshape", self.of_kind(x.kind, int(np.prod(sizes)), share=1.0), self.whole(sizes))
        if how == "scaled":
            each = self.of_kind(x.kind, sizes[0], *(1,) * (len(sizes) - 1), share=1.0)
            return self.node("Mul", self.of_kind(x.kind, *sizes, share=1.0), each)
        if how == "dequantized" and x.kind == TensorProto.FLOAT:
            return self.dequantized(*sizes)
        return self.of_kind(x.kind, *sizes, share=0.97)

    def dequantized(self, *sizes: int) -> Value:
        """A weight of 8 bits or more, symmetric or not, whose axes may be moved once more."""
        order = list(range(len(sizes)))
        if self.b.chance(0.3):
            self.rng.shuffle(order)
        shape = [sizes[order.index(i)] for i in range(len(sizes))]
        axis = self.rng.randrange(len(sizes))
        along = {"axis": axis} if self.b.chance(0.5) else {}
        scales = (shape[axis],) if along else ()
        wide = [TensorProto.INT16] if self.b.opset >= 21 else []
        stored = self.rng.choice([TensorProto.INT8] * 4 + [TensorProto.UINT8, *wide])
        scale = self.of_kind(TensorProto.FLOAT, *scales, data=lambda a: np.abs(a) / 50 + 0.01, share=1.0)
        given = [self.of_kind(stored, *shape, share=1.0), scale]
        if self.b.chance(0.4):
            given.append(self.of_kind(stored, *scales, data=np.zeros_like if self.b.chance(0.5) else None, share=1.0))
        made = self.node("DequantizeLinear", *given, **along)
        return made if order == sorted(order) else self.node("Transpose", made, perm=order)
