# SPDX-License-Identifier: Apache-2.0
"""The changes that a pattern is given, each of which leaves most of it as it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from backend_test.search.graphs.mutated.insertions import insert
from backend_test.search.graphs.mutated.patterns import SCALES
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS

#: Changes a model in place.
Change = Callable[[ModelProto, random.Random], None]
CHANGES: list[Change] = []
#: ONNX defines 0 and 1 alone.
_FLAGS = frozenset(
    {
        "allowzero",
        "ceil_mode",
        "count_include_pad",
        "exclusive",
        "keepdims",
        "largest",
        "reverse",
        "sorted",
        "transA",
        "transB",
    }
)
_KINDS = {np.dtype(np.float32): np.float16}


def _change(function: Change) -> Change:
    CHANGES.append(function)
    return function


def _node(graph: GraphProto, rng: random.Random, least: int = 1) -> NodeProto | None:
    """One with so many inputs at least."""
    nodes = [node for node in graph.node if len(node.input) >= least]
    return rng.choice(nodes) if nodes else None


@_change
def constant(model: ModelProto, rng: random.Random) -> None:
    """Another element in a constant, or the same in all of it."""
    tensors = [t for t in model.graph.initializer if np.prod(t.dims) > 0 and t.data_type != TensorProto.BOOL]
    if not tensors:
        return
    tensor = rng.choice(tensors)
    array = numpy_helper.to_array(tensor).copy()
    place = rng.randrange(array.size)
    old = array.flat[place].item()
    if array.dtype.kind != "f":
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        array.flat[place] = min(max(rng.choice((old + 1, old - 1, 1, 2, 0, -1, -old)), low), high)
    elif rng.random() < 0.2:
        array[...] = old
    elif tensor.name in SCALES:
        array.flat[place] = rng.choice((old * 1.5, 1, 0.5, 0.1, 0.07))
    else:
        array.flat[place] = rng.choice((old * 1.01, -old, 0, 1, 2, 0.5, old + 1))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


@_change
def attribute(model: ModelProto, rng: random.Random) -> None:
    """Another number in an attribute."""
    given = [a for node in model.graph.node for a in node.attribute]
    if not given:
        return
    chosen = rng.choice(given)
    if chosen.name in _FLAGS:
        chosen.i = 1 - chosen.i
    elif chosen.type == AttributeProto.INT:
        chosen.i = rng.choice((chosen.i + 1, chosen.i - 1, 0, 1, -1, 2))
    elif chosen.type == AttributeProto.FLOAT:
        chosen.f = rng.choice((chosen.f * 2, 0, 1, -chosen.f, chosen.f + 0.1))
    elif chosen.type == AttributeProto.INTS and chosen.ints:
        i, j = rng.randrange(len(chosen.ints)), rng.randrange(len(chosen.ints))
        if chosen.name == "perm":
            chosen.ints[i], chosen.ints[j] = chosen.ints[j], chosen.ints[i]
        else:
            chosen.ints[i] = rng.choice((chosen.ints[i] + 1, max(chosen.ints[i] - 1, 0), 1, 2, 0))


@_change
def operands(model: ModelProto, rng: random.Random) -> None:
    """Two operands in the other order."""
    if (node := _node(model.graph, rng, 2)) is not None:
        node.input[0], node.input[1] = node.input[1], node.input[0]


@_change
def same_operand(model: ModelProto, rng: random.Random) -> None:
    """One operand in the place of both."""
    if (node := _node(model.graph, rng, 2)) is not None:
        node.input[1] = node.input[0]


@_change
def operand(model: ModelProto, rng: random.Random) -> None:
    """Another value in the place of an operand."""
    graph = model.graph
    place = rng.randrange(len(graph.node))
    known = [value.name for value in graph.input]
    known += [name for node in graph.node[:place] for name in node.output if name]
    node = graph.node[place]
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(known)


@_change
def node_between(model: ModelProto, rng: random.Random) -> None:
    """A node more on the way."""
    places = [(i, j) for i, node in enumerate(model.graph.node) for j, name in enumerate(node.input) if name]
    insert(model.graph, *rng.choice(places), rng)


@_change
def reader(model: ModelProto, rng: random.Random) -> None:
    """Another reader of a value, whose result is given back."""
    graph = model.graph
    read = rng.choice([name for node in graph.node for name in node.output if name])
    made = f"read_{len(graph.node)}"
    graph.node.append(helper.make_node(rng.choice(("Identity", "Neg", "Relu", "Shape")), [read], [made]))
    graph.output.append(helper.make_empty_tensor_value_info(made))


@_change
def output(model: ModelProto, rng: random.Random) -> None:
    """A value on the way given back."""
    graph = model.graph
    name = rng.choice([node.output[0] for node in graph.node])
    if name not in {value.name for value in graph.output}:
        graph.output.append(helper.make_empty_tensor_value_info(name))


@_change
def size(model: ModelProto, rng: random.Random) -> None:
    """Another size of an input."""
    sizes = [d for value in model.graph.input for d in value.type.tensor_type.shape.dim]
    if sizes:
        rng.choice(sizes).dim_value = rng.choice((1, 2, 3, 4, 8))


@_change
def stored_input(model: ModelProto, rng: random.Random) -> None:
    """A constant in the place of an input."""
    graph = model.graph
    if len(graph.input) < 2:
        return
    value = rng.choice(graph.input)
    kind = value.type.tensor_type
    if kind.elem_type != TensorProto.FLOAT:
        return
    numbers = np.random.default_rng(rng.getrandbits(32))
    array = numbers.standard_normal([dim.dim_value for dim in kind.shape.dim]).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(array, value.name))
    graph.input.remove(value)


@_change
def half(model: ModelProto, rng: random.Random) -> None:
    """The whole in float16."""
    graph = model.graph
    if rng.random() < 0.5 or any(value.type.tensor_type.elem_type != TensorProto.FLOAT for value in graph.input):
        return
    if any(node.op_type in ("DequantizeLinear", "DynamicQuantizeLinear", *WITH_GRAPHS) for node in graph.node):
        return
    for value in graph.input:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for tensor in graph.initializer:
        array: Any = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(array.astype(_KINDS.get(array.dtype, array.dtype)), tensor.name))
