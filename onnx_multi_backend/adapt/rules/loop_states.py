# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop with a state that its body does not read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from onnx import GraphProto, ModelProto, ValueInfoProto, helper, numpy_helper

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.graph_walk import subgraphs

#: What an engine computes from the shape of its input alone.
_OF_SHAPES = frozenset({"Shape", "Size"})


def loop_states(site: Site) -> Iterator[ModelProto]:
    """Let every step choose between the old and the new state, by the number of the step: the choice is always the new one.

    An engine that drops what a body does not read drops the initial value too, which is the result where no step is made.
    Source: Loop's documentation.
    """
    unread = unread_states(site) if site.is_("Loop") else []
    if not unread:
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    never = numpy_helper.from_array(np.array(-1), "state/never")  # Less takes no integers before opset 9
    graph.initializer.append(never)
    graph.node.append(helper.make_node("Equal", [graph.input[0].name, "state/never"], ["state/before"]))
    for place in unread:
        old, new = graph.input[2 + place], graph.output[1 + place]
        chosen = f"state/{new.name}"
        then_branch = _branch(old.name, f"{chosen}/old", new)
        else_branch = _branch(new.name, f"{chosen}/new", new)
        graph.node.append(
            helper.make_node("If", ["state/before"], [chosen], then_branch=then_branch, else_branch=else_branch)
        )
        new.name = chosen
    body = Body(site, site.opsets)
    made = body("Loop", *site.node.input, outputs=len(site.node.output), body=graph)
    yield body.finish(*made)


def unread_states(site: Site) -> list[int]:
    """The places of a Loop's states that it hands on, and on whose value before the step nothing depends that a step makes.

    What is passed on as it is depends on it.
    """
    body = site.attribute("body")
    read = needed_of(body)
    states = enumerate(zip(body.input[2:], site.node.output, strict=False))
    return [i for i, (before, name) in states if name and before.name not in read]


def needed_of(
    graph: GraphProto, wanted: Collection[str] | None = None, unread: Collection[str] = _OF_SHAPES
) -> set[str]:
    """The values that a graph's outputs depend on (or these of its values), from outside it too, as far as the graph tells.

    What nodes of the operators in `unread` read does not count.
    """
    needed = {value.name for value in graph.output} if wanted is None else set(wanted)
    for node in reversed(graph.node):
        if needed.isdisjoint(node.output) or node.op_type in unread:
            continue
        read = list(node.input)
        bodies = list(subgraphs(node))
        for body in bodies:
            needed |= needed_of(body, unread=unread) - _made(body)
        if node.op_type == "Loop" and len(bodies) == 1:
            (body,) = bodies
            inside = needed_of(body, unread=unread)
            states = zip(node.input[2:], body.input[2:], strict=False)
            read = [*node.input[:2], *(name for name, before in states if before.name in inside)]
        needed.update(filter(None, read))
    return needed


def _made(graph: GraphProto) -> set[str]:
    """The names that a graph gives to values of its own."""
    made = {name for node in graph.node for name in node.output}
    return made | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}


def _branch(passed_on: str, name: str, like: ValueInfoProto) -> GraphProto:
    result = ValueInfoProto()
    result.CopyFrom(like)
    result.name = name
    return helper.make_graph([helper.make_node("Identity", [passed_on], [name])], name, [], [result])
