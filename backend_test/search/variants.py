# SPDX-License-Identifier: Apache-2.0
"""A model in other forms that compute the same: what an engine has of a case it may not have of a case in other clothes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper

from onnx_multi_backend.models.graph_walk import subgraphs

#: A model and what it is given, by name.
Case = tuple[ModelProto, dict[str, Any]]

#: Operators that undo themselves, by type.
_NEGATED = dict.fromkeys(
    (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64), "Neg"
) | {TensorProto.BOOL: "Not"}
#: The first opsets in which these have all of their types, with shapes in branches that are inferred, and functions that may hold such a graph.
_NEGATES, _BRANCHES, _FUNCTIONS = 13, 13, 15
#: The first version of the format with initializers that are no inputs, and with functions.
_FREE, _WITH_FUNCTIONS = 4, 8


def _copy(model: ModelProto) -> ModelProto:
    made = ModelProto()
    made.CopyFrom(model)
    del made.graph.value_info[:]
    return made


def _opset(model: ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)


def _tensor(kind: TypeProto) -> TypeProto.Tensor | None:
    """The tensor in sequences and optionals."""
    while (what := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, str(what)).elem_type
    return kind.tensor_type if kind.HasField("tensor_type") else None


def _holds_graphs(model: ModelProto) -> bool:
    return any(next(subgraphs(node), None) is not None for node in model.graph.node)


def open_sizes(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """All sizes are known only when it runs."""
    made, count = _copy(model), 0
    for value in made.graph.input:
        tensor = _tensor(value.type)
        for dim in tensor.shape.dim if tensor is not None else ():
            if dim.HasField("dim_value"):
                dim.dim_param = f"open{count}"
                count += 1
    for value in made.graph.output:
        tensor = _tensor(value.type)
        for dim in tensor.shape.dim if tensor is not None else ():
            dim.Clear()
    return (made, feeds) if count else None


def _undone(name: str, made: str, operator: str) -> list[NodeProto]:
    between = f"{made}_between"
    return [helper.make_node(operator, [name], [between]), helper.make_node(operator, [between], [made])]


def behind_nodes(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """Its inputs come from other nodes."""
    if _opset(model) < _NEGATES or _holds_graphs(model):
        return None
    made = _copy(model)
    defaults = {tensor.name for tensor in made.graph.initializer}
    given = _negatable(value for value in made.graph.input if value.name not in defaults)
    for node in made.graph.node:
        node.input[:] = [f"{name}_inside" if name in given else name for name in node.input]
    before = [node for name, operator in given.items() for node in _undone(name, f"{name}_inside", operator)]
    nodes = [*before, *made.graph.node]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return (made, feeds) if given else None


def before_nodes(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """Its outputs go to other nodes."""
    inputs = {value.name for value in model.graph.input}
    if _opset(model) < _NEGATES or _holds_graphs(model) or any(value.name in inputs for value in model.graph.output):
        return None
    made = _copy(model)
    given = _negatable(made.graph.output)
    for node in made.graph.node:
        node.input[:] = [f"{name}_inside" if name in given else name for name in node.input]
        node.output[:] = [f"{name}_inside" if name in given else name for name in node.output]
    made.graph.node.extend(node for name, op in given.items() for node in _undone(f"{name}_inside", name, op))
    return (made, feeds) if given else None


def _negatable(values: Iterable[ValueInfoProto]) -> dict[str, str]:
    kinds = {value.name: value.type.tensor_type.elem_type for value in values if value.type.HasField("tensor_type")}
    return {name: _NEGATED[kind] for name, kind in kinds.items() if kind in _NEGATED}


def in_function(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """It is a function that the model calls."""
    if model.functions or model.graph.initializer or _opset(model) < _FUNCTIONS:
        return None
    made, domain = _copy(model), "variants"
    names = [[value.name for value in values] for values in (made.graph.input, made.graph.output)]
    body = helper.make_function(domain, "f", *names, list(made.graph.node), list(made.opset_import))
    del made.graph.node[:]
    made.graph.node.append(helper.make_node("f", *names, domain=domain))
    made.functions.append(body)
    made.opset_import.append(helper.make_opsetid(domain, 1))
    made.ir_version = max(made.ir_version, _WITH_FUNCTIONS)
    return made, feeds


def in_branch(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """It is either branch of an If."""
    made = _copy(model)
    outputs, inputs = list(made.graph.output), {value.name for value in made.graph.input}
    optional = any(value.type.HasField("optional_type") for value in outputs)
    if _opset(model) < _BRANCHES or _holds_graphs(model) or optional:
        return None
    if any(v.name in inputs for v in (*outputs, *made.graph.initializer)):
        return None
    branches = {name: _renamed(made.graph, name) for name in ("then_branch", "else_branch")}
    del made.graph.node[:]
    del made.graph.initializer[:]
    made.graph.node.append(helper.make_node("If", ["choice"], [value.name for value in outputs], **branches))
    made.graph.input.append(helper.make_tensor_value_info("choice", TensorProto.BOOL, []))
    return made, {**feeds, "choice": np.array(True)}


def _renamed(graph: GraphProto, name: str) -> GraphProto:
    """A graph without inputs, whose values have names of their own."""
    body = GraphProto(name=name, node=graph.node, initializer=graph.initializer, output=graph.output)
    own = {n for node in graph.node for n in node.output if n} | {tensor.name for tensor in graph.initializer}
    for node in body.node:
        node.input[:] = [f"{n}_{name}" if n in own else n for n in node.input]
        node.output[:] = [f"{n}_{name}" if n else n for n in node.output]
    for value in (*body.initializer, *body.output):
        value.name = f"{value.name}_{name}"
    return body


def of_constants(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """Its inputs are constants, all but the first."""
    return _stored(model, feeds, kept=1)


def of_constants_alone(model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """All of its inputs are constants."""
    return _stored(model, feeds, kept=0)


def _stored(model: ModelProto, feeds: dict[str, Any], *, kept: int) -> Case | None:
    if not all(isinstance(array, np.ndarray) for array in feeds.values()):
        return None
    made = _copy(model)
    names = [value.name for value in made.graph.input if value.name in feeds][kept:]
    inputs = [value for value in made.graph.input if value.name not in names]
    del made.graph.input[:]
    made.graph.input.extend(inputs)
    made.graph.initializer.extend(numpy_helper.from_array(feeds[name], name) for name in names)
    made.ir_version = max(made.ir_version, _FREE)
    return (made, {name: array for name, array in feeds.items() if name not in names}) if names else None


_FORMS: Mapping[str, Callable[[ModelProto, dict[str, Any]], Case | None]] = {
    "behind nodes": behind_nodes,
    "before nodes": before_nodes,
    "in a function": in_function,
    "in a branch": in_branch,
    "of constants": of_constants,
    "of constants alone": of_constants_alone,
}
NAMES = ("with open sizes", *_FORMS, *(f"{name}, with open sizes" for name in _FORMS))


def variant(name: str, model: ModelProto, feeds: dict[str, Any]) -> Case | None:
    """The model in one of these forms (`NAMES`), and what it is given; None where it has none."""
    case: Case | None = (model, feeds)
    for form in _steps(name):
        case = form(*case) if case is not None else None
    return case


def _steps(name: str) -> Iterator[Callable[[ModelProto, dict[str, Any]], Case | None]]:
    if name.endswith("with open sizes"):
        yield open_sizes
    if (form := _FORMS.get(name.removesuffix(", with open sizes"))) is not None:
        yield form
