# SPDX-License-Identifier: Apache-2.0
"""Keeping nodes apart that an engine would compute together: with the larger of a value and itself, which is that value, between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from onnx import ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import inner_first, walked_of
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back
from onnx_multi_backend.models.plausible import expands_too_far

_Place = TypeVar("_Place")

#: Since these opsets Max takes all numbers, and floating-point ones of these types.
ANY_NUMBER, ANY_FLOAT = 12, 8
FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16})
#: What OpenVINO leaves out before it looks for a pattern; a Cast may change no type.
LEFT_OUT = ("Cast", "Identity")
#: Since this opset Squeeze and Unsqueeze have their axes as an input.
AXES_AS_INPUT = 13


def larger(read: str, made: str, *, name: str) -> NodeProto:
    """The larger of a value and itself; no other node has the name."""
    return helper.make_node("Max", [read, read], [made], name=name)


def is_apart(node: NodeProto) -> bool:
    """Whether a node is the larger of a value and itself."""
    return node.op_type == "Max" and len(node.input) == 2 and node.input[0] == node.input[1]


def kept_apart(node: NodeProto, place: int, suffix: str, taken: set[str]) -> NodeProto:
    """Give an output of a node another name that is not taken, and return the node behind it that makes the old one."""
    made = node.output[place]
    apart = unused(f"{made}{suffix}", taken)
    node.output[place] = apart
    return larger(apart, made, name=apart)


def input_apart(node: NodeProto, place: int, suffix: str, taken: set[str], kept: dict[str, str]) -> NodeProto | None:
    """Have a node read the larger of an input and itself; the node that makes it, where no other node of the graph reads it already."""
    name = node.input[place]
    is_first = name not in kept
    if is_first:
        kept[name] = unused(f"{name}{suffix}", taken)
    node.input[place] = kept[name]
    return larger(name, kept[name], name=kept[name]) if is_first else None


def flat_for(contents: Contents) -> ModelProto | None:
    """The model without local functions; None where it grows too far, or its opset's Max does not take all of `FLOATS`."""
    if expands_too_far(contents.model):
        return None
    flat = typed_of(contents.model).flat
    return flat if opset_versions(flat).get("", 1) >= ANY_FLOAT else None


def outputs_apart(
    flat: ModelProto, found: Sequence[Mapping[int, int | Sequence[int]]], suffix: str, pass_name: str, reason: str
) -> Rewritten | None:
    """A copy of a model in which outputs are kept apart from what reads them; None where there are none.

    Parameters
    ----------
    flat : onnx.ModelProto
        Without local functions.
    found : sequence of mapping of int to int or sequence of int
        The place of the output, or those of several, by that of the node, for each graph as `inner_first` has them.
    suffix : str
        Of the new names.
    pass_name, reason : str
        Of the adaptations.
    """
    if not any(found):
        return None
    changes: list[Adaptation] = []
    taken = names_taken(flat)

    def write(node: NodeProto, outputs: int | Sequence[int], kept: dict[str, str]) -> Iterator[NodeProto]:
        yield node
        for output in (outputs,) if isinstance(outputs, int) else outputs:
            where = f"{node.op_type} {node.name or node.output[output]!r}"
            changes.append(Adaptation(pass_name, where, "kept apart from what reads it", reason))
            yield kept_apart(node, output, suffix, taken)

    return written(flat, found, write, changes)


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
    if not any(found):
        return None
    changes: list[Adaptation] = []
    taken = names_taken(flat)

    def write(node: NodeProto, inputs: int | Sequence[int], kept: dict[str, str]) -> Iterator[NodeProto]:
        for place in (inputs,) if isinstance(inputs, int) else inputs:
            if (made := input_apart(node, place, suffix, taken, kept)) is not None:
                where = f"{node.op_type} {node.name or node.output[0]!r}"
                changes.append(Adaptation(pass_name, where, change, reason))
                yield made
        yield node

    return written(flat, found, write, changes)


def written(
    flat: ModelProto,
    found: Sequence[Mapping[int, _Place]],
    write: Callable[[NodeProto, _Place, dict[str, str]], Iterator[NodeProto]],
    changes: Sequence[Adaptation],
) -> Rewritten:
    """A copy of a model in which `write` gives the nodes for each that is found; it fills `changes`, and a memory of each graph."""
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


def with_axes(read: str, made: str, count: int, opset: int) -> list[NodeProto]:
    """A value with axes of one element before its own."""
    return on_axes("Unsqueeze", read, made, range(count), as_input=opset >= AXES_AS_INPUT)


def on_axes(
    op_type: str, read: str, made: str, axes: Iterable[int], *, as_input: bool, name: str = "", **attributes: Any
) -> list[NodeProto]:
    """A node on some axes, which are an attribute or, in newer opsets, an input; it has the name of its result unless given another."""
    name = name or made
    if not as_input:
        return [helper.make_node(op_type, [read], [made], name=name, axes=list(axes), **attributes)]
    constant = f"{name}_places"
    return [
        helper.make_node("Constant", [], [constant], name=constant, value_ints=list(axes)),
        helper.make_node(op_type, [read, constant], [made], name=name, **attributes),
    ]


def passed_from(name: str, makers: Mapping[str, NodeProto], over: Collection[str]) -> str:
    """What a value is before nodes of these operators, which pass their first input on."""
    seen: set[str] = set()
    while name not in seen and (maker := makers.get(name)) is not None:
        if maker.op_type not in over or canonical(maker.domain):
            break
        seen.add(name)
        name = maker.input[0]
    return name


def maker_before(name: str, makers: Mapping[str, NodeProto], over: Collection[str]) -> NodeProto | None:
    """The node that makes a value, looked for before nodes of these operators, which pass their first input on."""
    return makers.get(passed_from(name, makers, over))


def is_made_by(name: str, operator: str, makers: Mapping[str, NodeProto], over: Collection[str] = ()) -> bool:
    """Whether a node of this operator makes a value, looked for before nodes of others, which pass their first input on."""
    maker = maker_before(name, makers, over)
    return maker is not None and maker.op_type == operator


def kept_types(opset: int) -> frozenset[int] | None:
    """The element types of which nodes can be kept apart in an opset; None for all numbers."""
    if opset >= ANY_NUMBER:
        return None
    return FLOATS if opset >= ANY_FLOAT else frozenset({TensorProto.FLOAT})


def of_kept_types(contents: Contents, flat: ModelProto, found: Sequence[Mapping[int, str]]) -> list[dict[int, int]]:
    """Of nodes' places, with a value of each, those whose value has a type that can be kept apart; as `inputs_apart` has them."""
    kinds = kept_types(opset_versions(flat).get("", 1))
    others = (TensorProto.UNDEFINED, TensorProto.BOOL, TensorProto.STRING)
    return _of_types(contents, found, lambda kind: kind in kinds if kinds is not None else kind not in others)


def of_floats(contents: Contents, flat: ModelProto, found: Sequence[Mapping[int, str]]) -> list[dict[int, int]]:
    """The same of floating point, as far as the type is known."""
    unknown = {TensorProto.UNDEFINED} if kept_types(opset_versions(flat).get("", 1)) is None else set()
    return _of_types(contents, found, lambda kind: kind in FLOATS | unknown)


def _of_types(
    contents: Contents, found: Sequence[Mapping[int, str]], is_meant: Callable[[int], bool]
) -> list[dict[int, int]]:
    def kind(name: str) -> int:
        types = walked_of(contents).types
        return types[name].elem_type if name in types else TensorProto.UNDEFINED

    return [{place: 0 for place, name in own.items() if is_meant(kind(name))} for own in found]


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
