# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO makes of an attention of fixed sizes together with what is computed of its result.

- 2025.4 splits the queries in two where batch times heads do not fill the cores, and leaves the axis more in an output of the model, directly or behind
  elementwise operators: (2, 2, 4) for (4, 4).
- Where something else reads the sum of an attention of float16 and another value too, the process ends while the model is compiled (2025.4, 2026.4, on a
  processor without float16). Where only products read it, moved at most, as in a transformer with a projection behind its heads, the process goes on.

A product over an axis of one element, which changes no value, keeps the attention apart. It keeps its axis, which is taken away behind it: of a
reduction that leaves its axis out and arithmetic with a constant, OpenVINO makes one step, and takes the constant's first element for all. (The
larger of the attention's result and itself ends the process in the second way, of float32 too where it follows a sum with the queries.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import AXES_AS_INPUT, has_fixed_inputs, on_axes, with_axes, written
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
#: The operator that is an attention itself.
WHOLE = "Attention"
_LAST = PRODUCTS | {WHOLE}
#: Products whose factors are read by nothing else in OpenVINO's graph.
_MULTIPLYING = frozenset({"Gemm", "MatMul"})
#: What no attention is seen through.
_ENDING = PRODUCTS | {
    WHOLE,
    *("Conv", "ConvInteger", "ConvTranspose", "GRU", "LSTM", "MatMulInteger", "QLinearConv", "QLinearMatMul", "RNN"),
}
#: What moves elements.
_MOVING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
#: What reads no elements.
_TELLING = frozenset({"Shape", "Size"})
#: What a Softmax may be written with.
_WEIGHTING = frozenset({"Exp", "Softmax"})
#: Since this opset ReduceProd has its axes as an input.
_REDUCES_BY_INPUT = 18
SUFFIX = f"{CAST}attention"
_CHANGE = "kept apart from what reads it"
_AXIS_TOO_MANY = "OpenVINO would leave the result of an attention with an axis too many"
_ENDS = "OpenVINO may end the process over what reads the result of an attention of float16"


def attention_outputs(contents: Contents) -> Rewritten | None:
    """A copy of the model in which attentions are kept apart from its outputs; None where there are none."""
    if not has_fixed_inputs(contents.model) or (walked := walked_with(contents)) is None:
        return None
    outputs = [value.name for graph in walked.graphs for value in graph.output]
    return _apart(walked, before(outputs, walked.makers), "attention_outputs", _AXIS_TOO_MANY)


def half_attentions(contents: Contents) -> Rewritten | None:
    """A copy of the model in which attentions of float16 are kept apart from what reads them; None where there are none."""
    if not _may_hold_halves(contents) or (walked := walked_with(contents)) is None:
        return None
    is_fixed = has_fixed_inputs(contents.model)
    values = weighted(walked)
    halves = [
        node
        for own in ends(walked, values)
        for _, node in own
        if node.output
        if may_be_added(node.output[0], walked)
        if (kind := walked.types.get(node.output[0])) is not None and kind.elem_type == TensorProto.FLOAT16
        if is_fixed or (kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim))
    ]
    return _apart(walked, halves, "half_attentions", _ENDS)


def _may_hold_halves(contents: Contents) -> bool:
    """Whether there is float16 in a model, as far as is seen at a glance: inference takes longer."""
    given = (value.type.tensor_type.elem_type for value in contents.model.graph.input)
    cast = (attribute.i for node in contents.of("Cast") for attribute in node.attribute if attribute.name == "to")
    return TensorProto.FLOAT16 in contents.tensor_types or TensorProto.FLOAT16 in (*given, *cast)


def walked_with(contents: Contents) -> Walked | None:
    """The model, where it may have an attention."""
    written_out = contents.has(PRODUCTS) and contents.has(_WEIGHTING)
    if not (written_out or contents.has({WHOLE})):
        return None
    return walked_of(contents)


def _apart(walked: Walked, nodes: Iterable[NodeProto], pass_name: str, reason: str) -> Rewritten | None:
    """A copy in which the attentions that end with one of these nodes are kept apart from what reads them."""
    values = weighted(walked)
    names = {node.output[0] for node in nodes if is_end(node, values) and SUFFIX not in node.output[0]}
    found = [
        {i: name for i, node in enumerate(own) for name in node.output[:1] if name in names} for own in walked.views
    ]
    if not any(found):
        return None
    flat = walked.flat
    opset, taken, changes = opset_versions(flat).get("", 1), names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, name: str, kept: dict[str, str]) -> Iterator[NodeProto]:
        changes.append(Adaptation(pass_name, f"{node.op_type} {node.name or name!r}", _CHANGE, reason))
        node.output[0] = unused(f"{name}{SUFFIX}", taken)
        yield node
        yield from _over_an_axis(node.output[0], name, node.output[0], opset, taken)

    return written(flat, found, write, changes)


def without_fusion(walked: Walked, found: Sequence[Mapping[int, str]], pass_name: str, reason: str) -> Rewritten | None:
    """A copy in which the weights of attentions are kept apart from their values; the queries, for the operator `Attention`.

    Parameters
    ----------
    walked : Walked
    found : sequence of mapping of int to str
        What the nodes read first that these attentions end with, by the nodes' places, for each graph.
    pass_name, reason : str
        Of the adaptations.
    """
    if not any(found):
        return None
    flat = walked.flat
    opset, taken, changes = opset_versions(flat).get("", 1), names_taken(flat), list[Adaptation]()

    def write(node: NodeProto, name: str, kept: dict[str, str]) -> Iterator[NodeProto]:
        where = f"{node.op_type} {node.name or node.output[0]!r}"
        changes.append(Adaptation(pass_name, where, "kept apart from what it is multiplied by", reason))
        node.input[0] = unused(f"{name}{SUFFIX}", taken)
        yield from _over_an_axis(name, node.input[0], node.input[0], opset, taken)
        yield node

    return written(flat, found, write, changes)


def _over_an_axis(read: str, made: str, name: str, opset: int, taken: set[str]) -> Iterator[NodeProto]:
    """The product of a value over an axis of one element, which is that value; no other node has the name."""
    longer, whole = (unused(f"{name}{end}", taken) for end in ("_longer", "_whole"))
    yield from with_axes(read, longer, 1, opset)
    yield from on_axes("ReduceProd", longer, whole, [0], as_input=opset >= _REDUCES_BY_INPUT, name=name, keepdims=1)
    yield from on_axes("Squeeze", whole, made, [0], as_input=opset >= AXES_AS_INPUT, name=whole)


def weighted(walked: Walked) -> set[str]:
    """The values that come of a Softmax or an Exp, products and the like not passed."""
    found: set[str] = set()
    for node in (node for nodes in reversed(walked.views) for node in nodes):  # the outer ones first
        operator = node.proto.op_type
        if operator in _WEIGHTING or (operator not in _ENDING and not found.isdisjoint(node.input)):
            found.update(node.output)
    return found


def ends(walked: Walked, values: Collection[str]) -> list[list[tuple[int, NodeProto]]]:
    """The nodes of each graph that attentions end with, and their places; these values are `weighted`."""
    return [
        [
            (place, node.proto)
            for place, node in enumerate(nodes)
            if node.operator in _LAST and is_end(node.proto, values)
        ]
        for nodes in walked.views
    ]


def is_end(node: NodeProto, values: Collection[str]) -> bool:
    """Whether an attention ends with a node; these values are `weighted`."""
    if canonical(node.domain):
        return False
    return node.op_type == WHOLE or (node.op_type in PRODUCTS and any(name in values for name in node.input))


def may_be_added(name: str, walked: Walked) -> bool:
    """Whether anything but a product reads a value, moved at most."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in walked.several:
            return True
        for reader in (reader for readers in walked.readers for reader in readers.get(name, ())):
            if not canonical(reader.domain) and reader.op_type in _TELLING:
                continue
            if not canonical(reader.domain) and reader.op_type in _MOVING and name == reader.input[0]:
                todo.append(reader.output[0])
            elif canonical(reader.domain) or reader.op_type not in _MULTIPLYING or name in reader.input[2:]:
                return True
    return False


def before(names: Collection[str], makers: Mapping[str, NodeProto]) -> Iterator[NodeProto]:
    """The nodes that values come through, up to products and the like, which are among them."""
    seen: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in seen or (maker := makers.get(name)) is None:
            continue
        seen.add(name)
        yield maker
        if maker.op_type not in _ENDING:
            todo += maker.input
