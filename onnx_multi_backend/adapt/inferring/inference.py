# SPDX-License-Identifier: Apache-2.0
"""Inferring the types of a model's values, in bounded time and memory.

onnx follows integers through a model as if they were shapes and makes a message of some 80 bytes for each of them, whether they
are a shape or a table of millions. What is too long to be a shape is hidden from it.
Source: ``DataPropagationContextImpl::getInputData`` and ``getShapeInput`` in onnx (1.23).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from onnx_multi_backend.adapt.inferring import contrib_schemas, unknown_sizes
from onnx_multi_backend.adapt.inferring.hidden_integers import Followed, restored, without_long_constants
from onnx_multi_backend.adapt.inferring.open_ranks import open_ranks
from onnx_multi_backend.models import negative_sizes, untyped
from onnx_multi_backend.models.graph_walk import all_nodes, bodies, canonical
from onnx_multi_backend.models.plausible import expands_too_far, implausible
from onnx_multi_backend.models.undeclared import without_declared

#: Passes after which what is still hidden stays hidden.
_MOST_PASSES = 4

#: Since this opset the axes of a Squeeze may come in any order for onnx's inference.
_ANY_ORDER = 11

_FAILURES = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    ValueError,  # above 2 GB, or text that is not UTF-8
    RuntimeError,
    IndexError,  # onnx (1.23) reads the first element of a constant that has none, as the frame_step of an STFT
)


def infer(model: ModelProto) -> ModelProto:
    """A copy of the model with the types of its values, as far as onnx can tell; the model itself where it is not to be asked."""
    nodes = list(all_nodes(model))
    if implausible(nodes) is not None or expands_too_far(model):
        return model
    operators = {node.op_type for node in nodes}
    if "Squeeze" in operators:
        model = _with_sorted_axes(model)
    if not untyped.NAMES.isdisjoint(operators) and untyped.may_crash(model):
        return untyped.restore(_with_sizes_open(untyped.without(model)))
    return _with_sizes_open(model) if unknown_sizes.ATTENTION in operators else _inferred(model)


def infer_more(model: ModelProto, typed: ModelProto) -> ModelProto:
    """A copy of a model with the types of its values, of which those are known that another one has: it was made of that one.

    What is new is inferred without following integers. The values of graphs in graphs are not looked at.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output if name}
    del copy.graph.value_info[:]
    copy.graph.value_info.extend(value for value in typed.graph.value_info if value.name in made)
    told = {value.name: value.type for value in typed.graph.output}
    for value in copy.graph.output:
        if value.name in told:
            value.type.CopyFrom(told[value.name])
    found = _asked(copy, data_prop=False)
    if found is None:
        return copy
    if ranks := open_ranks(found.graph):
        _, found = _with_ranks(copy, found, ranks)
    return found


def _with_sorted_axes(model: ModelProto) -> ModelProto:
    """Before opset 11 onnx (1.23) leaves out the axes of a Squeeze that precede the one before them."""
    if contrib_schemas.opset_of(model) >= _ANY_ORDER:
        return model
    if not any(_is_unsorted(node) for node in all_nodes(model)):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in filter(_is_unsorted, all_nodes(copy)):
        node.attribute[0].ints.sort()
    return copy


def _is_unsorted(node: NodeProto) -> bool:
    if node.op_type != "Squeeze" or canonical(node.domain) or len(node.attribute) != 1:
        return False
    axes = list(node.attribute[0].ints)
    return axes != sorted(axes)


def _with_sizes_open(model: ModelProto) -> ModelProto:
    """The types, in which no size is 0 that is not known. What another node takes for nothing may come of the first."""
    typed, declared = _inferred(model), model
    for _ in all_nodes(model):  # one may come of the other
        if not (wrong := unknown_sizes.taken_for_nothing(typed)):
            break
        declared = unknown_sizes.declaring(declared, wrong)
        typed = _inferred(declared)
    return typed if declared is model else unknown_sizes.restore(typed)


def _inferred(model: ModelProto) -> ModelProto:
    visible, long = without_long_constants(model)
    typed = _asked(visible, data_prop=False)
    if typed is None:
        return model
    followed = None if model.functions else Followed(visible.graph)
    if followed is not None and followed.follows:
        typed = _with_shapes_followed(visible, typed, followed)
    if ranks := open_ranks(typed.graph):
        visible, typed = _with_ranks(visible, typed, ranks)
        if followed is not None and followed.follows:
            typed = _with_shapes_followed(visible, typed, followed)
    return restored(typed, model) if long else typed


def _with_ranks(model: ModelProto, typed: ModelProto, ranks: list[ValueInfoProto]) -> tuple[ModelProto, ModelProto]:
    """The model with these ranks declared, and others that come of them; and its types."""
    for _ in range(_MOST_PASSES):
        model = _declaring(model, ranks)
        typed = _asked(model, data_prop=False) or typed
        if not (ranks := open_ranks(typed.graph)):
            break
    return model, typed


def _declaring(model: ModelProto, values: list[ValueInfoProto]) -> ModelProto:
    """A copy of the model that declares these values."""
    copy = ModelProto()
    copy.CopyFrom(model)
    declared = {value.name: value for value in (*copy.graph.value_info, *copy.graph.output)}
    for value in values:
        if value.name in declared:
            declared[value.name].type.CopyFrom(value.type)
        else:
            copy.graph.value_info.append(value)
    return copy


def is_valid(model: ModelProto) -> bool:
    """Whether onnx finds nothing wrong with the shapes in a model of one node: no rule is written for another.

    Types are not looked at, but for text: the node may stand in a newer opset's form in an older one that lacks its type. Where one is
    not known, nothing can be found.
    """
    if implausible(all_nodes(model)) is not None or _reads_text_for_numbers(model):
        return False
    if not all(value.type.WhichOneof("value") for value in model.graph.input) or untyped.may_crash(model):
        return True
    if _passes(model):
        return True
    others = (_with_defaults(model), _with_lengths(model), unknown_sizes.undeclared(model), _with_shapes_open(model))
    return any(other is not None and _passes(other) for other in others)


def _reads_text_for_numbers(model: ModelProto) -> bool:
    """Whether the node of a model reads a text that its operator does not take in the newest opset."""
    node = model.graph.node[0]
    given = {v.name for v in model.graph.input if v.type.tensor_type.elem_type == TensorProto.STRING}
    if not given.intersection(node.input) or not onnx.defs.has(node.op_type, canonical(node.domain)):
        return False
    taken = onnx.defs.get_schema(node.op_type, canonical(node.domain)).inputs
    return any(
        name in given and "tensor(string)" not in taken[min(i, len(taken) - 1)].types
        for i, name in enumerate(node.input)
        if taken
    )


def _passes(model: ModelProto) -> bool:
    model = negative_sizes.without(model)
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except _FAILURES:
        return False
    return True


def _with_shapes_open(model: ModelProto) -> ModelProto | None:
    """The model of one node with graphs, in which these declare no shapes, which may be false; None for any other node."""
    return without_declared(model, steps=True) if any(bodies(model.graph.node[0])) else None


def _with_lengths(model: ModelProto) -> ModelProto | None:
    """The model of one Resize with lists as long as it has axes: one of unknown length has none for onnx (1.23); None for any other node."""
    node = model.graph.node[0]
    if node.op_type != "Resize" or canonical(node.domain):
        return None
    copy = ModelProto()
    copy.CopyFrom(model)
    shapes = {value.name: value.type.tensor_type.shape for value in copy.graph.input}
    ranks = {name: len(shape.dim) for name, shape in shapes.items()} | {
        t.name: len(t.dims) for t in copy.graph.initializer
    }
    length = next((len(a.ints) for a in node.attribute if a.name == "axes"), ranks.get(node.input[0], 0))
    for name in node.input[2:]:
        shape = shapes.get(name)
        if shape is not None and len(shape.dim) == 1 and not shape.dim[0].HasField("dim_value"):
            shape.dim[0].dim_value = length
    return copy


def _with_defaults(model: ModelProto) -> ModelProto | None:
    """The model of one node, and what it holds, with attributes' defaults written out; None if all have them.

    The body in an operator's schema may need them (onnx 1.23).
    """
    versions = {canonical(o.domain): o.version for o in model.opset_import}
    if not any(_missing(node, versions) for node in all_nodes(model)):
        return None
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes(copy):
        node.attribute.extend(_missing(node, versions))
    return copy


def _missing(node: NodeProto, versions: Mapping[str, int]) -> list[AttributeProto]:
    """The defaults of attributes that a node does not have."""
    domain = canonical(node.domain)
    if not onnx.defs.has(node.op_type, versions.get(domain, 1), domain):
        return []
    schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
    given = {attribute.name for attribute in node.attribute}
    return [a.default_value for name, a in schema.attributes.items() if name not in given and a.default_value.name]


def _asked(model: ModelProto, *, data_prop: bool) -> ModelProto | None:
    ask = functools.partial(onnx.shape_inference.infer_shapes, data_prop=data_prop)
    model = negative_sizes.without(model)
    try:
        return contrib_schemas.inferred(model, ask) if contrib_schemas.occur_in(model) else ask(model)
    except _FAILURES:
        return None


def _with_shapes_followed(model: ModelProto, typed: ModelProto, followed: Followed) -> ModelProto:
    """The types once integers are followed, where they are short enough: what that finds may let more be followed."""
    before: list[int] | None = None
    for _ in range(_MOST_PASSES):
        hidden = followed.too_long(typed.graph)
        if hidden == before:
            break
        found = _asked(followed.hiding(model, typed, hidden) if hidden else model, data_prop=True)
        if found is None:
            break
        typed = followed.shown(found, hidden) if hidden else found
        if not hidden:
            break
        before = hidden
    return typed
