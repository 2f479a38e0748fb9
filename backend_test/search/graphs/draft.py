# SPDX-License-Identifier: Apache-2.0
"""One node in the making: what a recipe draws its operands and attributes with."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import Builder, Dims, NoFitError, Value, shape_of


class Draft:
    """A node of one operator, whose operands and attributes are being drawn.

    Attributes
    ----------
    inputs : list of Value or None
    attributes : dict
    settled : dict of str to int
        The element type that each type variable of the schema stands for.
    by_variable : dict of str to tuple of int
        The element types that each may stand for.
    """

    def __init__(self, builder: Builder, op_type: str, reuse: float = 0.65) -> None:
        self.b, self.op_type, self.reuse = builder, op_type, reuse
        self.rng: random.Random = builder.rng
        self.opset = builder.opset
        try:
            self.schema = onnx.defs.get_schema(op_type, builder.opset, "")
        except onnx.defs.SchemaError as error:
            raise NoFitError(str(error)) from error
        if self.schema.deprecated:
            raise NoFitError(f"{op_type} is deprecated")
        self.since = self.schema.since_version
        self.inputs: list[Value | None] = []
        self.attributes: dict[str, Any] = {}
        self.settled: dict[str, int] = {}
        self.by_variable: dict[str, tuple[int, ...]] = {
            c.type_param_str: tuple(
                k for k in v.kinds_of(tuple(c.allowed_type_strs)) if not builder.kinds or k in builder.kinds
            )
            for c in self.schema.type_constraints
        }

    # Types.

    def allowed(self, var: str = "T") -> tuple[int, ...]:
        """The element types that a type variable may stand for."""
        if var in self.settled:
            return (self.settled[var],)
        return v.kinds_of((var,)) if var.startswith("tensor(") else self.by_variable[var]

    def kind(self, var: str = "T", among: Sequence[int] | None = None) -> int:
        """The element type of a type variable, drawn where it is not settled yet."""
        fitting = [k for k in self.allowed(var) if among is None or k in among]
        if not fitting:
            raise NoFitError(f"{self.op_type}: no type for {var}")
        self.settled[var] = v.draw_kind(self.rng, fitting)
        return self.settled[var]

    # Operands.

    def known(self, kinds: Sequence[int], fits: Callable[[Dims], bool] = lambda dims: True) -> Value | None:
        """A value that is there already and fits."""
        found = [x for x in self.b.values if x.kind in kinds and (dims := x.dims) is not None and fits(dims)]
        return self.rng.choice(found[-6:]) if found else None

    def x(
        self,
        var: str = "T",
        *,
        dims: Dims | None = None,
        ranks: Sequence[int] = (0, 1, 1, 2, 2, 3, 3, 4),
        least: int = 0,
        fits: Callable[[Dims], bool] = lambda dims: True,
        among: Sequence[int] | None = None,
        reuse: bool = True,
        constant: bool | None = None,
        profile: str | None = None,
        data: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> Value:
        """An operand: one that is there already, or a new one.

        Parameters
        ----------
        dims : Dims, optional
            Exactly these; else one of `ranks` with dimensions of at least `least`.
        data : callable, optional
            Makes the new operand's numbers fit, from the drawn ones.
        """

        def right(found: Dims) -> bool:
            if dims is not None:
                return found == dims
            return len(found) in ranks and all(min(d) >= least for d in found) and fits(found)

        if reuse and data is None and not constant and self.rng.random() < self.reuse:
            kinds = [k for k in self.allowed(var) if among is None or k in among]
            value = self.known(kinds, right)
            if value is not None:
                self.settled[var] = value.kind
                self.inputs.append(value)
                return value
        kind = self.kind(var, among)
        shape = dims
        for _ in range(20):
            if shape is not None and (dims is not None or fits(shape)):
                break
            shape = self.b.shape(ranks, least)
        if shape is None or (dims is None and not fits(shape)):
            raise NoFitError(f"{self.op_type}: no shape fits")
        made = self.b.drawn(kind, shape, profile)
        if data is not None:
            with np.errstate(all="ignore"):
                made = data(made[0]).astype(made[0].dtype), data(made[1]).astype(made[1].dtype)
        value = self.b.operand(made, constant=constant)
        self.inputs.append(value)
        return value

    def given(self, one: Any, two: Any = None, kind: int = TensorProto.INT64, *, constant: bool | None = None) -> Value:
        """An operand with this content, in the second run with that of `two`."""
        dtype = v.np_dtype(kind)
        first = np.asarray(one, dtype)
        second = first if two is None else np.asarray(two, dtype)
        if not np.array_equal(first, second):
            if constant:
                raise NoFitError("a constant cannot differ between the runs")
            constant = False
        value = self.b.operand((first, second), constant=constant)
        self.inputs.append(value)
        return value

    def skip(self) -> None:
        """Leave an optional input out."""
        self.inputs.append(None)

    def broadcast_to(self, dims: Dims) -> Dims:
        """Dimensions that broadcast to these."""
        cut = dims[self.rng.randrange(len(dims) + 1) :] if self.b.chance(0.4) else dims
        return tuple((1, 1) if self.b.chance(0.2) else d for d in cut)

    # Attributes.

    def attr(self, name: str, value: Any, share: float = 1.0) -> Any:
        """Set an attribute where the operator has it; with a share below 1 not always."""
        wanted = share >= 1 or (not self.b.simple and self.b.chance(share))
        if name in self.schema.attributes and wanted:
            self.attributes[name] = value
            return value
        return None

    def axis(self, rank: int, least: int = 0, negative_since: int = 11) -> int:
        """An axis, counted from the end too where that is allowed."""
        if rank <= least:
            raise NoFitError("there is no axis")
        axis = self.rng.randrange(least, rank)
        return axis - rank if self.since >= negative_since and self.b.chance(0.35) else axis

    def axes(self, rank: int, most: int | None = None) -> list[int]:
        """Several axes, each once."""
        count = self.rng.randint(1, min(rank, most or rank)) if rank else 0
        axes = self.rng.sample(range(rank), count)
        return [a - rank if self.since >= 11 and self.b.chance(0.3) else a for a in axes]

    def shapes(self, value: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A value's shapes in the two runs."""
        assert value.dims is not None
        return shape_of(value.dims, 0), shape_of(value.dims, 1)

    def done(self, outputs: int = 1) -> list[Value]:
        """Put the node into the graph."""
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        return self.b.node(self.op_type, self.inputs, outputs, **self.attributes)
