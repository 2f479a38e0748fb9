# SPDX-License-Identifier: Apache-2.0
"""A random graph: a few nodes of any operator on each other's results, and inputs for two runs."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, ValueInfoProto, helper

from backend_test.search.graphs import elementwise, indexing, layers, networks, other_types, shaping, vision  # noqa: F401
from backend_test.search.graphs.builder import Builder, NoFitError, Value
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import RECIPES
from backend_test.search.graphs.structures import LOCAL, structure

OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
#: The IR version of each model: the newest that all engines read.
IR_VERSION = 10
#: Opsets that models are exported in.
_USUAL = (11, 13, 17, 18, 21)
#: Draws of nodes before a graph is given up.
_TRIES = 60


class Plan(NamedTuple):
    """What a graph may hold.

    Attributes
    ----------
    operators : tuple of str
        All that there is a recipe for when empty.
    opsets : sequence of int
    nodes : tuple of int
        The numbers of nodes to choose from.
    structures : float
        How probably a node is one that holds others.
    kinds : tuple of int
        The element types of a graph's values; all when empty.
    profiles : tuple of str
        How numbers are drawn; one choice or another when empty.
    dynamic : bool, optional
        Whether dimensions are symbolic, and differ between the runs; drawn when None.
    simple : bool
        Operands are inputs, not constants, attributes have their defaults, and If, Loop and Scan keep to the forms that ONNX's evaluator computes
        rightly.
    """

    operators: tuple[str, ...] = ()
    opsets: Sequence[int] = OPSETS
    nodes: tuple[int, ...] = (1, 1, 2, 2, 3, 4, 5)
    structures: float = 0.12
    kinds: tuple[int, ...] = ()
    profiles: tuple[str, ...] = ()
    dynamic: bool | None = None
    simple: bool = False


class Made(NamedTuple):
    """A random model, and the inputs of two runs by name."""

    model: ModelProto
    feeds: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


@functools.cache
def known_operators(opset: int) -> tuple[str, ...]:
    """The operators of an opset that there is a recipe for."""
    found = []
    for name in RECIPES:
        try:
            if not onnx.defs.get_schema(name, opset, "").deprecated:
                found.append(name)
        except onnx.defs.SchemaError:
            continue
    return tuple(found)


def random_graph(rng: random.Random, plan: Plan = Plan()) -> Made:  # noqa: B008
    """Draw a graph; the same random numbers make the same graph."""
    while True:
        usual = [o for o in _USUAL if o in plan.opsets]
        opset = rng.choice(usual if usual and rng.random() < 0.4 else plan.opsets)
        dynamic = rng.random() < 0.5 if plan.dynamic is None else plan.dynamic
        profiles = ("ordinary",) if rng.random() < 0.6 else ("ordinary", "special", "wide")
        b = Builder(
            rng,
            opset,
            dynamic=dynamic,
            profiles=plan.profiles or profiles,
            constants=0.0 if plan.simple else rng.choice((0.1, 0.4, 0.8)),
            kinds=frozenset(plan.kinds),
        )
        b.simple = plan.simple
        _fill(b, plan)
        if any(node.op_type != "Constant" for node in b.nodes):
            return finish(b)


def _fill(b: Builder, plan: Plan) -> None:
    """Put nodes into a graph, and leave out what does not fit."""
    known = known_operators(b.opset)
    operators = [o for o in plan.operators if o in known] or known

    def grow(builder: Builder, share: float = plan.structures) -> list[Value]:
        if builder.chance(share) and builder.values:
            return structure(builder, lambda inner: grow(inner, share / 3))
        name = builder.rng.choice(operators)
        return RECIPES[name](Draft(builder, name))

    wanted = b.rng.choice(plan.nodes)
    for _ in range(_TRIES):
        before = mark(b)
        try:
            grow(b)
        except NoFitError:
            undo(b, before)
            continue
        wanted -= 1
        if not wanted:
            return


def mark(b: Builder) -> tuple[int, ...]:
    """Where a graph stands, to go back to."""
    return tuple(len(part) for part in (b.values, b.nodes, b.inputs, b.feeds, b.initializers, b.functions))


def undo(b: Builder, mark: tuple[int, ...]) -> None:
    """Take back what a node that did not fit has left."""
    parts: tuple[list[object], ...] = (b.values, b.nodes, b.inputs, b.feeds, b.initializers, b.functions)  # type: ignore[assignment]
    for part, length in zip(parts, mark, strict=True):
        del part[length:]


def finish(b: Builder) -> Made:
    """The model: its outputs are what no node reads, and sometimes more."""
    used = {name for node in b.nodes for name in node.input}
    own = {name for node in b.nodes for name in node.output if node.op_type != "Constant"}
    made = [x for x in b.values if x.name in own]
    outputs = [x for x in made if x.name not in used or b.chance(0.15)]
    graph = helper.make_graph(b.nodes, "random", b.inputs, [_output(b, x) for x in outputs], b.initializers)
    opsets = [helper.make_opsetid("", b.opset), *([helper.make_opsetid(LOCAL, 1)] if b.functions else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, functions=b.functions)
    names = [i.name for i in b.inputs]
    one, two = (dict(zip(names, (f[run] for f in b.feeds), strict=True)) for run in (0, 1))
    return Made(model, (one, two))


def _output(b: Builder, value: Value) -> ValueInfoProto:
    """An output's declaration, with its shape where both runs agree on it."""
    if not value.types[0].HasField("tensor_type"):
        return helper.make_value_info(value.name, value.types[0])
    if value.dims is None or not all(t.tensor_type.HasField("shape") for t in value.types):
        rank = [len(t.tensor_type.shape.dim) for t in value.types if t.tensor_type.HasField("shape")]
        dims = [None] * rank[0] if len(rank) == 2 and rank[0] == rank[1] else None
        return helper.make_tensor_value_info(value.name, value.kind, dims)
    return helper.make_tensor_value_info(
        value.name,
        value.kind,
        [a if a == c and not b.dynamic else f"{value.name}_{i}" for i, (a, c) in enumerate(value.dims)],
    )
