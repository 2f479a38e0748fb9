# SPDX-License-Identifier: Apache-2.0
"""A model in a function that another calls, in a branch, in a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from backend_test.search.forms.case import Case, copied, holds_graphs, is_array, opset, renamed

#: The first opsets with shapes in graphs that are inferred, and with functions that may hold such a graph.
_BRANCHES, _FUNCTIONS = 13, 15
#: The first version of the format with functions.
_WITH_FUNCTIONS = 8
_TURNS = 2


def in_function(case: Case) -> Case | None:
    """It is a function that the model calls."""
    if case.model.functions or case.model.graph.initializer or opset(case.model) < _FUNCTIONS:
        return None
    made, domain = copied(case.model), "variants"
    names = [[value.name for value in values] for values in (made.graph.input, made.graph.output)]
    body = helper.make_function(domain, "f", *names, list(made.graph.node), list(made.opset_import))
    del made.graph.node[:]
    made.graph.node.append(helper.make_node("f", *names, domain=domain))
    made.functions.append(body)
    made.opset_import.append(helper.make_opsetid(domain, 1))
    made.ir_version = max(made.ir_version, _WITH_FUNCTIONS)
    return case._replace(model=made)


def in_branch(case: Case) -> Case | None:
    """It is either branch of an If."""
    made = copied(case.model)
    outputs = list(made.graph.output)
    optional = any(value.type.HasField("optional_type") for value in outputs)
    if not _may_be_inside(case) or optional:
        return None
    branches = {name: _inside(made.graph, name) for name in ("then_branch", "else_branch")}
    del made.graph.node[:]
    del made.graph.initializer[:]
    made.graph.node.append(helper.make_node("If", ["choice"], [value.name for value in outputs], **branches))
    made.graph.input.append(helper.make_tensor_value_info("choice", TensorProto.BOOL, []))
    return case._replace(model=made, feeds={**case.feeds, "choice": np.array(True)})


def in_loop(case: Case) -> Case | None:
    """It runs in each turn of a Loop, which reads its inputs from around it."""
    return _looped(case, states=False)


def in_loop_of_states(case: Case) -> Case | None:
    """It runs in each turn of a Loop, whose states its inputs are."""
    return _looped(case, states=True)


def in_scan(case: Case) -> Case | None:
    """It is what a Scan does with each element."""
    if not _may_be_inside(case) or not _tensors_alone(case) or not case.feeds:
        return None
    made = copied(case.model)
    fed = [v for v in made.graph.input if v.name in case.feeds]
    body = _inside(made.graph, "body")
    body.input.extend(renamed(v, f"{v.name}_each") for v in fed)
    for node in body.node:
        node.input[:] = [f"{n}_each" if n in case.feeds else n for n in node.input]
    nodes = [_axis("Unsqueeze", v.name, f"{v.name}_listed") for v in fed]
    listed = [f"{v.name}_listed" for v in made.graph.output]
    scan = helper.make_node("Scan", [f"{v.name}_listed" for v in fed], listed, body=body, num_scan_inputs=len(fed))
    nodes += [scan, *(_axis("Squeeze", name, v.name) for name, v in zip(listed, made.graph.output, strict=True))]
    _replace(made.graph, nodes, [numpy_helper.from_array(np.array([0], np.int64), "first_axis")])
    return case._replace(model=made)


def _looped(case: Case, *, states: bool) -> Case | None:
    if not _may_be_inside(case) or not _tensors_alone(case):
        return None
    made = copied(case.model)
    fed = [v for v in made.graph.input if v.name in case.feeds] if states else []
    body = _inside(made.graph, "body")
    outputs = list(body.output)
    del body.output[:]
    body.input.extend(
        [helper.make_tensor_value_info("turn", TensorProto.INT64, []), _truth("on")]
        + [renamed(v, f"{v.name}_state") for v in fed]
    )
    named = {v.name: f"{v.name}_state" for v in fed}
    for node in body.node:
        node.input[:] = [named.get(n, n) for n in node.input]
    body.node.append(helper.make_node("Identity", ["on"], ["still_on"]))
    body.node.extend(helper.make_node("Identity", [f"{v.name}_state"], [f"{v.name}_next"]) for v in fed)
    body.output.extend([_truth("still_on"), *(renamed(v, f"{v.name}_next") for v in fed), *outputs])
    listed = [f"{v.name}_listed" for v in made.graph.output]
    loop = helper.make_node(
        "Loop", ["turns", "always", *(v.name for v in fed)], [*(f"{v.name}_last" for v in fed), *listed], body=body
    )
    last = [
        helper.make_node("Gather", [name, "last_turn"], [v.name], axis=0)
        for name, v in zip(listed, made.graph.output, strict=True)
    ]
    constants = {"last_turn": np.array(_TURNS - 1, np.int64), "always": np.array(True)}
    _replace(made.graph, [loop, *last], [numpy_helper.from_array(x, n) for n, x in constants.items()])
    made.graph.input.append(helper.make_tensor_value_info("turns", TensorProto.INT64, []))
    return case._replace(model=made, feeds={**case.feeds, "turns": np.array(_TURNS, np.int64)})


def _truth(name: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.BOOL, [])


def _axis(operator: str, name: str, made: str) -> NodeProto:
    return helper.make_node(operator, [name, "first_axis"], [made])


def _replace(graph: GraphProto, nodes: list[NodeProto], constants: list[TensorProto]) -> None:
    """These nodes are the graph's; what it stored went with its own."""
    del graph.node[:]
    del graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(constants)


def _may_be_inside(case: Case) -> bool:
    """Whether all that comes out is computed by nodes, which hold no graphs."""
    graph = case.model.graph
    inputs = {value.name for value in graph.input}
    outside = any(v.name in inputs for v in (*graph.output, *graph.initializer)) or graph.sparse_initializer
    return opset(case.model) >= _BRANCHES and not holds_graphs(case.model) and not outside


def _tensors_alone(case: Case) -> bool:
    values: list[Any] = [*case.feeds.values(), *(case.results or [])]
    typed = all(v.type.HasField("tensor_type") for v in (*case.model.graph.input, *case.model.graph.output))
    return typed and all(map(is_array, values))


def _inside(graph: GraphProto, name: str) -> GraphProto:
    """A graph without inputs, whose values have names of their own."""
    body = GraphProto(name=name, node=graph.node, initializer=graph.initializer, output=graph.output)
    own = {n for node in graph.node for n in node.output if n} | {tensor.name for tensor in graph.initializer}
    for node in body.node:
        node.input[:] = [f"{n}_{name}" if n in own else n for n in node.input]
        node.output[:] = [f"{n}_{name}" if n else n for n in node.output]
    for value in (*body.initializer, *body.output):
        value.name = f"{value.name}_{name}"
    return body
