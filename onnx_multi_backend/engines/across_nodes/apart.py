# SPDX-License-Identifier: Apache-2.0
"""Keeping nodes apart that an engine would compute together: with the larger of a value and itself, which is that value, between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, bodies, canonical, put_back
from onnx_multi_backend.models.plausible import expands_too_far

_Place = TypeVar("_Place")

#: Since these opsets Max takes all numbers, and floating-point ones of these types.
ANY_NUMBER, ANY_FLOAT = 12, 8
FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16})

#: Of one element.
_NUMBER = TensorProto()
#: What has the shape of what it reads.
_ALIKE = frozenset({"Cast", "Identity"})
#: What may make several elements of one.
_GROWING = frozenset(
    {"Concat", "ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"}
)


def larger(read: str, made: str, *, name: str) -> NodeProto:
    """The larger of a value and itself; no other node has the name."""
    return helper.make_node("Max", [read, read], [made], name=name)


def is_apart(node: NodeProto) -> bool:
    """Whether a node is the larger of a value and itself."""
    return node.op_type == "Max" and len(node.input) == 2 and node.input[0] == node.input[1]


def unused(name: str, taken: set[str]) -> str:
    """A name like this one that is not taken; it is from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def kept_apart(node: NodeProto, place: int, suffix: str, taken: set[str]) -> NodeProto:
    """Give an output of a node another name that is not taken, and return the node behind it that makes the old one."""
    made = node.output[place]
    apart = unused(f"{made}{suffix}", taken)
    node.output[place] = apart
    return larger(apart, made, name=apart)


def flat_for(contents: Contents) -> ModelProto | None:
    """The model without local functions; None where it grows too far, or its opset's Max does not take all of `FLOATS`."""
    if expands_too_far(contents.model):
        return None
    flat = typed_of(contents.model).flat
    return flat if opset_versions(flat).get("", 1) >= ANY_FLOAT else None


def outputs_apart(
    flat: ModelProto, found: Sequence[Mapping[int, Sequence[int]]], suffix: str, pass_name: str, reason: str
) -> Rewritten | None:
    """A copy of a model in which outputs are kept apart from what reads them; None where there are none.

    Parameters
    ----------
    flat : onnx.ModelProto
        Without local functions.
    found : sequence of mapping of int to sequence of int
        The places of these outputs by that of their node, for each graph as `inner_first` has them.
    suffix : str
        Of the new names.
    pass_name, reason : str
        Of the adaptations.
    """
    changes: list[Adaptation] = []
    taken = names_taken(flat)

    def write(node: NodeProto, outputs: Sequence[int], kept: dict[str, str]) -> Iterator[NodeProto]:
        yield node
        for output in outputs:
            where = f"{node.op_type} {node.name or node.output[output]!r}"
            changes.append(Adaptation(pass_name, where, "kept apart from what reads it", reason))
            yield kept_apart(node, output, suffix, taken)

    return _written(flat, found, write, changes)


def inputs_apart(
    flat: ModelProto,
    found: Sequence[Mapping[int, int | Sequence[int]]],
    suffix: str,
    pass_name: str,
    change: str,
    reason: str,
) -> Rewritten | None:
    """A copy of a model in which nodes read the larger of an input and itself, one for all that read the same; None where there are none.

    Parameters
    ----------
    flat : onnx.ModelProto
        Without local functions.
    found : sequence of mapping of int to int or sequence of int
        The place of the input, or those of several, by that of the node, for each graph as `inner_first` has them.
    suffix : str
        Of the new names.
    pass_name, change, reason : str
        Of the adaptations.
    """
    changes: list[Adaptation] = []
    taken = names_taken(flat)

    def write(node: NodeProto, inputs: int | Sequence[int], kept: dict[str, str]) -> Iterator[NodeProto]:
        for place in (inputs,) if isinstance(inputs, int) else inputs:
            name = node.input[place]
            if name not in kept:
                kept[name] = unused(f"{name}{suffix}", taken)
                where = f"{node.op_type} {node.name or node.output[0]!r}"
                changes.append(Adaptation(pass_name, where, change, reason))
                yield larger(name, kept[name], name=kept[name])
            node.input[place] = kept[name]
        yield node

    return _written(flat, found, write, changes)


def _written(
    flat: ModelProto,
    found: Sequence[Mapping[int, _Place]],
    write: Callable[[NodeProto, _Place, dict[str, str]], Iterator[NodeProto]],
    changes: Sequence[Adaptation],
) -> Rewritten | None:
    """A copy of a model in which `write` gives the nodes for each that is found; it fills `changes`, and a memory of each graph."""
    if not any(found):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    added: set[str] = set()
    for graph, places in zip(inner_first(copy.graph), found, strict=True):
        if not places:
            continue
        kept: dict[str, str] = {}
        nodes: list[NodeProto] = []
        for i, node in enumerate(graph.node):
            written = list(write(node, places[i], kept)) if i in places else [node]
            added.update(new.name for new in written if new is not node)
            nodes += written
        put_back(graph, nodes)
    return Rewritten(copy, tuple(changes), frozenset(added))


def fixed_values(graphs: Sequence[GraphProto], *, shapes: bool = True) -> dict[str, TensorProto | None]:
    """What OpenVINO has computed before anything runs, by name; None for what is no stored tensor and may have several elements.

    It makes constants of the defaults of inputs, too.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        As `inner_first` has them.
    shapes : bool
        Whether the shapes count, as numbers. It knows those that are declared, and a run tells the others.
    """
    fixed: dict[str, TensorProto | None] = {t.name: t for graph in graphs for t in graph.initializer}
    for graph in reversed(graphs):  # the outer ones first
        for node in graph.node:
            if node.op_type == "Constant":
                held = node.attribute[0] if len(node.attribute) == 1 else None
                fixed[node.output[0]] = held.t if held is not None and held.HasField("t") else None
            elif node.op_type in ("Shape", "Size"):
                if shapes:
                    fixed[node.output[0]] = _NUMBER
            elif node.op_type in _ALIKE and node.input[0] in fixed:
                fixed[node.output[0]] = fixed[node.input[0]]
            elif node.input and all(name in fixed for name in node.input if name):
                read = [fixed[name] for name in node.input if name]
                one = node.op_type not in _GROWING and all(t is not None and math.prod(t.dims) == 1 for t in read)
                fixed.update(dict.fromkeys(filter(None, node.output), _NUMBER if one else None))
    return fixed


def makers_of(graphs: Sequence[GraphProto]) -> dict[str, NodeProto]:
    """The node that makes each value, but for names that mean several: following them from graph to graph could go round in a circle."""
    left_out = names_of_several(graphs)
    left_out.update(given.name for graph in graphs for given in graph.input)
    left_out.update(given.name for graph in graphs for given in graph.initializer)
    made = {name: node for graph in graphs for node in graph.node for name in node.output if name}
    return {name: node for name, node in made.items() if name not in left_out}


def names_of_several(graphs: Iterable[GraphProto]) -> set[str]:
    """The names that mean several values, in graphs beside each other or in one inside another."""
    seen: set[str] = set()
    several: set[str] = set()
    for graph in graphs:
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own.update(name for node in graph.node for name in node.output if name)
        several |= seen & own
        seen |= own
    return several


def maker_before(name: str, makers: Mapping[str, NodeProto], over: Collection[str]) -> NodeProto | None:
    """The node that makes a value, looked for before nodes of these operators, which pass their first input on."""
    while (maker := makers.get(name)) is not None and maker.op_type in over and not canonical(maker.domain):
        name = maker.input[0]
    return maker


def kept_types(opset: int) -> frozenset[int] | None:
    """The element types of which nodes can be kept apart in an opset; None for all numbers."""
    if opset >= ANY_NUMBER:
        return None
    return FLOATS if opset >= ANY_FLOAT else frozenset({TensorProto.FLOAT})


def of_kept_types(contents: Contents, flat: ModelProto, found: Sequence[Mapping[int, str]]) -> list[dict[int, int]]:
    """Of nodes' places, with what each reads first, those whose input has a type that can be kept apart; as `inputs_apart` has them."""
    kinds = kept_types(opset_versions(flat).get("", 1))
    types = tensor_types(inner_first(typed_of(contents.model).model.graph))

    def is_kept(name: str) -> bool:
        kind = types[name].elem_type if name in types else TensorProto.UNDEFINED
        return kind in kinds if kinds is not None else kind not in (TensorProto.UNDEFINED, TensorProto.BOOL)

    return [{place: 0 for place, name in own.items() if is_kept(name)} for own in found]


def names_taken(model: ModelProto) -> set[str]:
    """The names of a model's nodes, and of what they read and make."""
    return {name for node in all_nodes(model) for name in (node.name, *node.input, *node.output)}


def with_larger(model: ModelProto, places: Collection[int], suffix: str) -> tuple[ModelProto, set[str]]:
    """A copy in which some nodes read the larger of their first input and itself, and the names of the nodes that are new.

    Parameters
    ----------
    model : onnx.ModelProto
    places : collection of int
        The nodes, by their position in the main graph.
    suffix : str
        Of the new names.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    nodes: list[NodeProto] = []
    added = set()
    for i, node in enumerate(copy.graph.node):
        if i in places:
            name = f"{node.output[0]}{suffix}"
            nodes.append(larger(node.input[0], name, name=name))
            node.input[0] = name
            added.add(name)
        nodes.append(node)
    put_back(copy.graph, nodes)
    return copy, added


def has_fixed_inputs(model: ModelProto) -> bool:
    """Whether all shapes are known before anything runs, but for what data decides about."""
    shapes = [value.type.tensor_type for value in model.graph.input]
    return all(t.HasField("shape") and all(dim.HasField("dim_value") for dim in t.shape.dim) for t in shapes)


def inner_first(graph: GraphProto) -> list[GraphProto]:
    """A graph of a model without local functions, and its subgraphs; the inner ones first, since a node is copied with them."""
    return [*(g for node in graph.node for body in bodies(node) for g in inner_first(body)), graph]


def tensor_types(graphs: Iterable[GraphProto]) -> dict[str, TypeProto.Tensor]:
    """The types of values, as far as they are known; of those that share a name, any."""
    values = (v for graph in graphs for v in (*graph.input, *graph.value_info, *graph.output))
    return {v.name: v.type.tensor_type for v in values if v.type.HasField("tensor_type")}
