# SPDX-License-Identifier: Apache-2.0
"""The bounds of wide integer inputs within which an engine that computes in int32 is right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.constant_values import of_tensor
from onnx_multi_backend.adapt.intervals.leaving import Leaving
from onnx_multi_backend.adapt.intervals.ranges import follow, ranges
from onnx_multi_backend.adapt.intervals.sum_sizes import counter
from onnx_multi_backend.adapt.intervals.values import LIMITS, Value, may_have_wrapped, of_type
from onnx_multi_backend.adapt.operation import Counts, Made, Values
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS

_T = TensorProto
_INT32 = LIMITS[_T.INT32]
_LONG = frozenset({_T.INT64, _T.UINT64})

#: The bits of a bound that is held to whatever it comes from. Fewer may come from what sizes are assumed to be.
_FEWEST_BITS = 6
#: A bound of fewer bits is as wide as it may be.
_COARSE_BITS = 10
#: How often what is between a bound of more bits and one of another bit is halved.
_HALVINGS = 5


class Bound(NamedTuple):
    """What the elements of an input have to lie between.

    Attributes
    ----------
    low, high : int
    why : str
        What the message says behind these two.
    bits : int
        Of the input's type.
    products : sequence of (sequence of int or None)
        The axes of each ReduceProd that reads the input, whose results have to stay within int32; none for all of them, and
        None where any product may be made (they are not known, or it is a CumProd).
    rows : str
        For indices, of what and how many; empty for others.
    """

    low: int
    high: int
    why: str
    bits: int = 64
    products: Sequence[Sequence[int] | None] = ()
    rows: str = ""


class Bounds(NamedTuple):
    """The bounds by input.

    Attributes
    ----------
    of_inputs : dict of str to Bound
    overflows : list of NodeProto
        Those that leave int32 whatever the inputs are.
    wrapped : list of NodeProto
        Those that read an unsigned difference which may be below 0 and so wraps around.
    """

    of_inputs: dict[str, Bound]
    overflows: list[NodeProto]
    wrapped: list[NodeProto]


def largest(kind: int) -> Value:
    """What of an input's type the engine can be given."""
    low, high = LIMITS[kind]
    return of_type(kind) if kind == _T.UINT32 else Value(kind, max(low, _INT32[0]), min(high, _INT32[1]))


def as_inputs(graph: GraphProto, limits: Mapping[str, Value]) -> dict[str, Value]:
    """What `ranges` is given of inputs; a default counts, since OpenVINO makes a constant of it."""
    given = {v.name for v in graph.input}
    inputs = {name: value._replace(sources=frozenset({name})) for name, value in limits.items()}
    inputs.update({t.name: of_tensor(t) for t in graph.initializer if t.name in given})
    return inputs


def find_bounds(model: ModelProto, wide: Mapping[str, int], leaving: Leaving) -> Bounds:
    """The bounds within which no node leaves int32; they are lowered for the inputs that such a node is computed from.

    Parameters
    ----------
    model : onnx.ModelProto
        Without local functions.
    wide : mapping of str to int
        The types of the wide inputs by name.
    leaving : Leaving
        Of the model with the `largest` inputs.
    """
    search = _Search(model, wide)
    few = search.lower(leaving, range(31, _FEWEST_BITS - 1, -1)).sources
    search.widen(search.lowered - few)
    if not few:
        return Bounds(search.bounds(), [], [])
    search.assuming = False  # else sizes that multiply sizes would refuse right runs
    search.limits.update({name: largest(wide[name]) for name in few})
    many = search.lower(search.look(), range(31, _FEWEST_BITS - 1, -1))
    none = search.lower(many, range(_FEWEST_BITS - 1, -1, -1))
    search.widen(few)
    useless = {name for name in few if not search.is_useful(name)}
    wrapped = [node for node, sources in many.wrapped if not useless.isdisjoint(sources)]
    return Bounds(search.bounds(), [node for node, _ in none.found], wrapped)


class _EnoughError(Exception):
    """Ends a look at a model."""


class _Search:
    """The limits of inputs, while they are searched for.

    Attributes
    ----------
    limits : dict of str to Value
    assuming : bool
        Whether sizes and the numbers of elements of a sum are taken for what they may be, else for the least.
    """

    def __init__(self, model: ModelProto, wide: Mapping[str, int]) -> None:
        self.limits = {name: largest(kind) for name, kind in wide.items()}
        self.assuming = True
        self._model, self._wide = model, wide
        self._counts: Counts | None = None
        self._base: tuple[tuple[bool, bool], list[NodeProto], Values] | None = None

    @property
    def lowered(self) -> set[str]:
        """The inputs that are not given all that their type holds."""
        return {name for name, kind in self._wide.items() if self.limits[name] != largest(kind)}

    def look(self, enough: Collection[str] = ()) -> Leaving:
        """What leaves int32 within the limits; no further than the node that tells it of each of the inputs that are `enough`."""
        graph, look, left = self._model.graph, Leaving(assuming=self.assuming), set(enough)

        def visit(node: NodeProto, operands: list[Value], made: Made) -> None:
            seen = len(look.found)
            look(node, operands, made)
            if left and len(look.found) > seen:
                left.difference_update(*(sources for _, sources in look.found[seen:]))
                if not left:
                    raise _EnoughError

        nodes, values = self._depending()
        with suppress(_EnoughError):
            follow(graph, nodes, {**values, **as_inputs(graph, self.limits)}, visit=visit, count=self._count)
        return look

    def _depending(self) -> tuple[list[NodeProto], Values]:
        """The nodes that compute something of the inputs, and all values: those of other nodes do not depend on the limits."""
        how = self.assuming, self._counts is not None
        if self._base is None or self._base[0] != how:
            graph = self._model.graph
            values = ranges(graph, inputs=as_inputs(graph, self.limits), count=self._count)
            nodes = [node for node in graph.node if _depends(node, values)]
            self._base = how, nodes, values
        return self._base[1:]

    def _count(self, node: NodeProto) -> int | None:
        known = self._counts(node) if self._counts is not None else None
        return 1 if known is None and not self.assuming else known

    def lower(self, leaving: Leaving, steps: Iterable[int]) -> Leaving:
        """Lower the limits of the inputs that results beyond int32 are computed from, to one number of bits after another."""
        for bits in steps:
            if self._counts is None and leaving.counted:
                self._counts = counter(self._model)
                leaving = self.look()
            if not leaving.found:
                return leaving
            sources = leaving.sources
            for name in sources:
                self._lower(name, 2**bits - 1)
            leaving = self.look(sources)
        return self.look() if leaving.found else leaving

    def _lower(self, name: str, most: int) -> None:
        value = self.limits[name]
        self.limits[name] = value._replace(low=max(value.low or 0, -most), high=min(value.high or 0, most))

    def widen(self, names: Collection[str]) -> None:
        """Widen limits, at each end: to all of int32, or as far as it goes, where they have many bits to within a few of a hundred."""
        for name in filter(names.__contains__, self._wide):
            few = self.limits[name].within(1 - 2**_COARSE_BITS, 2**_COARSE_BITS - 1)
            for end in ("high", "low"):
                right, wrong = getattr(self.limits[name], end), getattr(largest(self._wide[name]), end)
                if right == wrong or self._widens(name, end, wrong):
                    continue
                while abs(wrong) > 2 * abs(right) + 1:
                    right = (2 * abs(right) + 1) * (1 if wrong > 0 else -1)
                    if not self._widens(name, end, right):
                        wrong = right
                self._approach(name, end, wrong, steps=32 if few else _HALVINGS)

    def _approach(self, name: str, end: str, wrong: int, *, steps: int) -> None:
        """Widen a limit towards one that is too wide."""
        for _ in range(steps):
            right = getattr(self.limits[name], end)
            tried = right + int((wrong - right) / 2)
            if tried == right:
                break
            if not self._widens(name, end, tried):
                wrong = tried

    def _widens(self, name: str, end: str, tried: int) -> bool:
        """Whether a limit may be so wide, and then it is."""
        before = self.limits[name]
        self.limits[name] = before._replace(high=tried) if end == "high" else before._replace(low=tried)
        if name in self.look({name}).sources:
            self.limits[name] = before
            return False
        return True

    def is_useful(self, name: str) -> bool:
        """Whether more than a handful of numbers are left."""
        value = self.limits[name]
        return int((value.high or 0) - (value.low or 0)) >= (1 << _FEWEST_BITS - 1) - 1

    def bounds(self) -> dict[str, Bound]:
        """The limits, where they are not those of an input's type anyway."""
        found: dict[str, Bound] = {}
        for name, kind in self._wide.items():
            value, lowered = self.limits[name], name in self.lowered
            if value.low is None or value.high is None or (kind not in _LONG and not lowered):
                continue
            why = ", beyond which a result computed from this input overflows" if lowered else ""
            found[name] = Bound(int(value.low), int(value.high), why, _bits(kind))
        return found


def _depends(node: NodeProto, values: Values) -> bool:
    """Whether what a node makes is followed from an input, or may be in its graphs."""
    if node.domain or node.op_type in WITH_GRAPHS:
        return True
    read = (values[name] for name in node.input if name in values)
    return any(value.sources or may_have_wrapped(value) for value in read)


def _bits(kind: int) -> int:
    low, high = LIMITS[kind]
    return (high - low).bit_length()
