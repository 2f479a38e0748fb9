# SPDX-License-Identifier: Apache-2.0
"""Nodes that hold other nodes: If, Loop and Scan, whose bodies read values from outside, and local functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from backend_test.search.graphs.builder import Builder, Dims, NoFitError, Value
from backend_test.search.graphs.values import FLOATS

LOCAL = "local"

#: Puts one more node into a graph, of an element type where one is given.
Grow = Callable[[Builder], list[Value]]


def structure(b: Builder, grow: Grow) -> list[Value]:
    """One of them, where there is a value to work on."""
    makers = [branches, loop, call]
    if b.opset >= 9:
        makers.append(scan)
    return b.rng.choice(makers)(b, grow)


def _tensors(b: Builder, least: int = 0) -> list[Value]:
    found = [x for x in b.values if x.kind and x.dims is not None and len(x.dims) >= least]
    if not found:
        raise NoFitError("there is no value to work on")
    return found


def _nested(b: Builder) -> Builder:
    return Builder(
        b.rng, b.opset, dynamic=b.dynamic, profiles=b.profiles, constants=float(not b.simple), kinds=b.kinds, outer=b
    )


def _info(name: str, types: tuple[TypeProto, TypeProto]) -> ValueInfoProto:
    """A value of a subgraph: a dimension that differs between the runs is left open."""
    one, two = (t.tensor_type for t in types)
    if not one.HasField("shape"):
        return helper.make_tensor_value_info(name, one.elem_type, None)
    dims = [
        a.dim_value if a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value == b.dim_value else None
        for a, b in zip(one.shape.dim, two.shape.dim, strict=True)
    ]
    return helper.make_tensor_value_info(name, one.elem_type, dims)


def _like(inside: Builder, wanted: Value, grow: Grow, steps: Sequence[int] = (1, 1, 2)) -> str:
    """Nodes that end in a value of the wanted type and shape; return its name."""
    first = len(inside.nodes)
    for _ in range(inside.rng.choice(steps)):
        try:
            grow(inside)
        except NoFitError:
            continue
    fitting = [x for x in inside.values if x.kind == wanted.kind and x.dims == wanted.dims]
    own = {name for node in inside.nodes[first:] for name in node.output}
    fresh = [x for x in fitting if x.name in own]
    last = inside.rng.choice(fresh or fitting)
    # A subgraph's output is a node's, not a value from outside.
    return inside.node("Identity", [last])[0].name


def _graph(inside: Builder, name: str, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> GraphProto:
    return helper.make_graph(inside.nodes, name, inputs, outputs, inside.initializers)


def branches(b: Builder, grow: Grow) -> list[Value]:
    """An If whose branches end in values of one type."""
    wanted = b.rng.choice(_tensors(b))
    if b.chance(0.5):
        condition = b.operand(
            (np.array(b.chance(0.5)), np.array(b.chance(0.5))), constant=False if not b.outer else None
        )
    else:
        condition = b.operand((np.array(b.chance(0.5)),) * 2)
    graphs = []
    for word in ("then", "else"):
        inside = _nested(b)
        name = _like(inside, wanted, grow)
        graphs.append(_graph(inside, word, [], [_info(name, wanted.types)]))
    made = b.fresh()
    b.nodes.append(helper.make_node("If", [condition.name], [made], then_branch=graphs[0], else_branch=graphs[1]))
    return [b.add(Value(made, wanted.types))]


def loop(b: Builder, grow: Grow) -> list[Value]:
    """A Loop over one value, with what it was at each step as a second output."""
    start = b.rng.choice(_tensors(b))
    inside = _nested(b)
    step, go, again, state = (b.fresh(w) for w in ("i", "go", "again", "s"))
    inside.add(Value(state, start.types))
    counter = helper.make_tensor_type_proto(TensorProto.INT64, [])
    if b.chance(0.4):
        inside.add(Value(step, (counter, counter)))
    inside.nodes.append(helper.make_node("Identity", [go], [again]))
    after = _like(inside, inside.values[len(b.values)], grow)
    inputs = [
        helper.make_tensor_value_info(step, TensorProto.INT64, []),
        helper.make_tensor_value_info(go, TensorProto.BOOL, []),
        _info(state, start.types),
    ]
    outputs = [helper.make_tensor_value_info(again, TensorProto.BOOL, []), _info(after, start.types)]
    counts = (b.rng.randrange(4), b.rng.randrange(4))
    scanned = not b.simple and b.chance(0.3)
    if scanned:
        each = inside.node("Identity", [inside.values[len(b.values)]])[0]
        outputs.append(_info(each.name, start.types))
    body = _graph(inside, "body", inputs, outputs)
    dynamic = not b.outer and b.chance(0.5)
    count = b.operand(
        (np.array(counts[0]), np.array(counts[1] if dynamic else counts[0])), constant=not dynamic or None
    )
    steps = (counts[0], counts[0]) if count.constant or not dynamic else counts
    on = b.operand((np.array(True),) * 2, constant=True)
    names = [b.fresh(), *([b.fresh()] if scanned else [])]
    b.nodes.append(helper.make_node("Loop", [count.name, on.name, start.name], names, body=body))
    made = [b.add(Value(names[0], start.types))]
    if scanned and start.dims is not None:
        made.append(b.add(_stacked(names[1], start, ((steps[0], steps[1]), *start.dims))))
    return made


def _stacked(name: str, like: Value, dims: Dims) -> Value:
    types = tuple(helper.make_tensor_type_proto(like.kind, [d[run] for d in dims]) for run in (0, 1))
    return Value(name, (types[0], types[1]))


def scan(b: Builder, grow: Grow) -> list[Value]:
    """A Scan along the first axis; the reference knows none of no steps."""
    fitting = [x for x in _tensors(b, 1) if x.dims and min(x.dims[0]) > 0]
    if not fitting:
        raise NoFitError("there is nothing to scan")
    scanned = b.rng.choice(fitting)
    assert scanned.dims is not None
    inside = _nested(b)
    part = _stacked(b.fresh("p"), scanned, scanned.dims[1:])
    inside.add(part)
    result = _like(inside, part, grow)
    body = _graph(inside, "body", [_info(part.name, part.types)], [_info(result, part.types)])
    attributes: dict[str, object] = {"num_scan_inputs": 1}
    if not b.simple and b.chance(0.2):
        attributes["scan_output_directions"] = [1]
    made = b.fresh()
    b.nodes.append(helper.make_node("Scan", [scanned.name], [made], body=body, **attributes))
    return [b.add(Value(made, scanned.types))]


def call(b: Builder, grow: Grow) -> list[Value]:
    """A call of a local function of one or two values."""
    if not b.calls:
        raise NoFitError("functions are called from the main graph")
    given = b.rng.choices(_tensors(b), k=b.rng.choice((1, 2)))
    inside = Builder(b.rng, b.opset, dynamic=False, profiles=b.profiles, constants=float(not b.simple), kinds=b.kinds)
    inside.palette = b.palette
    inside.calls, inside.simple = False, b.simple
    names = [f"a{i}" for i in range(len(given))]
    for name, value in zip(names, given, strict=True):
        inside.add(Value(name, value.types))
    before = len(inside.nodes)
    result = _like(inside, inside.values[0], _without_inputs(grow))
    if inside.inputs:
        raise NoFitError("a function has no inputs of its own")
    if b.opset < 9 and any(t.data_type not in FLOATS for t in inside.initializers):
        raise NoFitError("a Constant was one of floats")
    constants = [helper.make_node("Constant", [], [t.name], value=t) for t in inside.initializers]
    nodes: list[NodeProto] = [*constants, *inside.nodes[before:]]
    name, made = f"f{len(b.functions)}", b.fresh()
    opsets = [helper.make_opsetid("", b.opset)]
    b.functions.append(helper.make_function(LOCAL, name, names, [result], nodes, opsets))
    b.nodes.append(helper.make_node(name, [x.name for x in given], [made], domain=LOCAL))
    return [b.add(Value(made, given[0].types))]


def _without_inputs(grow: Grow) -> Grow:
    def inner(b: Builder) -> list[Value]:
        count = len(b.inputs)
        made = grow(b)
        if len(b.inputs) > count:
            raise NoFitError("a function has no inputs of its own")
        return made

    return inner
