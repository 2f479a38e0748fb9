# SPDX-License-Identifier: Apache-2.0
"""Results that are known to have no elements: nothing has to be computed, and engines compute some of them wrongly, or end the process.

Seen with OneHot of no indices, which OpenVINO (2026.4) computes while it loads a model; see `Target.wrong_when_empty` for the others.
So is the largest or smallest of no integers, which is the limit of their type: OpenVINO gives those of int32, ONNX Runtime (1.24) 0. And
so are the states of a recurrent layer without steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.intervals.values import LIMITS
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.operators.pools import POOLS, TOLD_OF_WINDOWS, may_leave_a_window_out
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back, subgraphs
from onnx_multi_backend.models.skeleton import skeleton_of
from onnx_multi_backend.models.tensors import has_zero, numpy_dtype
from onnx_multi_backend.models.undeclared import without_declared

_MADE = frozenset({"Constant", "ConstantOfShape"})
_MADE_OF = frozenset({"Cast", "Reshape", "Slice"})
#: What gives the results of each step: one that every step makes alike comes out wrong, or ends the process.
_STEPPING = frozenset({"Loop", "Scan"})
_SUFFIX = "/omb_dims"
_FLOAT = "/omb_float"
_T = TensorProto
#: What ConstantOfShape makes in every opset that has it, and what is cast from that.
_PLAIN = frozenset({_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16, _T.BOOL, *INTEGER_BITS})
#: Since this opset Reshape has its shape as an input.
_SHAPE_INPUT = 5
#: Since this opset Reshape takes a 0 for a size.
_ALLOWS_ZERO = 14
#: The first opset with ConstantOfShape.
_OLDEST = 9
#: Which limit of an integer type the extreme of nothing is. Of floating-point numbers it is an infinity, as the engines have it.
_EXTREMES = {"ReduceMax": 0, "ReduceMin": 1}
_LAYER_RANK = 3
#: What may have results of some elements, or of unknown sizes, though it reads a tensor of none, and which input that is.
_READING = {
    **dict.fromkeys(("ConvTranspose", "DFT", "GRU", "OneHot", "TopK", "Unique"), slice(1)),
    **dict.fromkeys(
        ("AveragePool", "Conv", "ConvInteger", "GridSample", "LpPool", "QLinearConv", "RoiAlign"), slice(1)
    ),
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul"), slice(1)),
    "Attention": slice(3),
    "STFT": slice(2, 3),
    **dict.fromkeys(("BiasGelu", "GroupQueryAttention", "MultiHeadAttention", "SkipLayerNormalization"), slice(1)),
    **dict.fromkeys(("Einsum", "Scan"), slice(None)),
}
_SUMS = frozenset({"Add", "Sub", "Sum"})
#: Of whose results onnx (1.23) infers other sizes: `onesided` is 1 by default.
_MISJUDGED = frozenset({"STFT"})


def with_empty_results(target: Target, payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload in which nodes make the results that are known to have no elements, where the engine gets operators of them wrong."""
    facts = payload.adapted.facts
    if not facts.may_be_empty or not facts.contents.has(target.wrong_when_empty):
        return payload, ()
    if not target.leaves_empty and not makes_nothing(payload.adapted.proto, target.wrong_when_empty):
        return payload, ()
    model = ModelProto()
    model.CopyFrom(payload.adapted.proto)
    reason = "what it makes, or reads, has no elements, and the engine may compute such wrongly"
    names = without_computing(model, _PLAIN, facts.opset, of_input=target.dies_of_empty_constants)
    changes = tuple(Adaptation("empty_results", name, "left out", reason) for name in names)
    return (payload.changed(model, *changes), changes) if changes else (payload, ())


def makes_nothing(model: ModelProto, operators: Set[str]) -> bool:
    """Whether the result of one of these operators is known to have no elements, or is known as that of none; or what it reads.

    What branches and loops compute counts too.
    """
    typed = infer(without_declared(skeleton_of(Contents(model)), steps=True)).graph
    return _makes_nothing(typed, {}, operators)


def _makes_nothing(typed: GraphProto, outer: Mapping[str, TypeProto], operators: Set[str]) -> bool:
    types = {**outer, **{v.name: v.type for v in (*typed.input, *typed.value_info, *typed.output)}}
    empty = {name for name, kind in types.items() if has_zero(kind.tensor_type.shape.dim)}
    # OpenVINO computes sums with convolutions, and gives what the run before gave.
    summed = _SUMS if "Conv" in operators and any(node.op_type == "Conv" for node in typed.node) else frozenset()
    return any(
        (
            node.op_type in operators | summed
            and (not canonical(node.domain) or node.domain == DOMAIN)
            and (
                (node.op_type not in _MISJUDGED and not empty.isdisjoint(node.output))
                or _extreme_of_nothing(node, types, _PLAIN) is not None
                or _has_no_steps(node, types, _PLAIN)
                or (node.op_type in _READING and not empty.isdisjoint(node.input[_READING[node.op_type]]))
            )
        )
        or any(_makes_nothing(inner, types, operators) for inner in subgraphs(node))
        for node in typed.node
    )


def _extreme_of_nothing(node: NodeProto, types: Mapping[str, TypeProto], kinds: frozenset[int]) -> int | None:
    """The largest or smallest of no integers, where all that it is taken over is known to be none; None for other results."""
    place = _EXTREMES.get(node.op_type)
    if place is None or canonical(node.domain) or not node.input:
        return None
    read, made = types.get(node.input[0]), types.get(node.output[0])
    limits = LIMITS.get(made.tensor_type.elem_type) if made is not None else None
    if limits is None or not _is_empty(read, kinds) or not _is_known(made, kinds):
        return None
    return limits[place]


def _has_no_steps(node: NodeProto, types: Mapping[str, TypeProto], kinds: frozenset[int]) -> bool:
    """Whether a recurrent layer is known to have no steps: its states are 0 then, as of a sequence of length 0 in ONNX Runtime.

    Some end ONNX Runtime's process (1.24 to 1.32), OpenVINO leaves the states unwritten.
    """
    if node.op_type not in LAYERS or canonical(node.domain) or not node.input:
        return False
    read = types.get(node.input[0])
    if read is None or len(read.tensor_type.shape.dim) != _LAYER_RANK:
        return False
    steps = read.tensor_type.shape.dim[any(a.name == "layout" and a.i for a in node.attribute)]
    return (
        steps.HasField("dim_value")
        and not steps.dim_value
        and all(_is_known(types.get(name), kinds) for name in node.output if name)
    )


def nothing(name: str, dims: Sequence[int], kind: int, opset: int, each: int = 0) -> list[NodeProto]:
    """The nodes that make a tensor without elements; or one of some elements, each of this value."""
    if kind == _T.BFLOAT16 and opset >= _OLDEST:
        made = nothing(name + _FLOAT, dims, _T.FLOAT, opset, each)
        return [*made, helper.make_node("Cast", [name + _FLOAT], [name], to=kind)]
    if opset < _OLDEST:
        one = numpy_helper.from_array(np.full([size or 1 for size in dims], each, numpy_dtype(kind)))
        if 0 not in dims:
            return [helper.make_node("Constant", [], [name], value=one)]
        axes = [axis for axis, size in enumerate(dims) if size == 0]
        zeros = [0] * len(axes)
        return [
            helper.make_node("Constant", [], [name + _SUFFIX], value=one),
            helper.make_node("Slice", [name + _SUFFIX], [name], axes=axes, starts=zeros, ends=zeros),
        ]
    shape = numpy_helper.from_array(np.array(list(dims), np.int64))
    value = numpy_helper.from_array(np.full(1, each, numpy_dtype(kind)))
    return [
        helper.make_node("Constant", [], [name + _SUFFIX], value=shape),
        helper.make_node("ConstantOfShape", [name + _SUFFIX], [name], value=value),
    ]


def _reshapes(source: ValueInfoProto, dims: Sequence[int], opset: int) -> bool:
    """Whether a tensor without elements can be given these sizes: in older opsets a 0 is the size that the tensor has there."""
    own = [d.dim_value for d in source.type.tensor_type.shape.dim]
    return opset >= _ALLOWS_ZERO or all(own[axis : axis + 1] == [0] for axis, size in enumerate(dims) if not size)


def _reshaped(source: ValueInfoProto, name: str, dims: Sequence[int], kind: int, opset: int) -> list[NodeProto]:
    """The nodes that make a tensor without elements of another."""
    cast, sizes = name + _FLOAT, name + _SUFFIX
    same = source.type.tensor_type.elem_type == kind
    allows: dict[str, Any] = {"allowzero": 1} if opset >= _ALLOWS_ZERO else {}
    reshaped = helper.make_node("Reshape", [source.name, sizes], [name if same else cast], **allows)
    shape = numpy_helper.from_array(np.array(list(dims), np.int64))
    made = [helper.make_node("Constant", [], [sizes], value=shape), reshaped]
    return made if same else [*made, helper.make_node("Cast", [cast], [name], to=kind)]


def without_computing(
    model: ModelProto, kinds: frozenset[int], opset: int, *, believes: bool = False, of_input: bool = False
) -> list[str]:
    """Put `nothing` in the place of the nodes that make such results, and of extremes of nothing; these nodes.

    Parameters
    ----------
    kinds : frozenset of int
        The element types that it can make.
    believes : bool
        Whether what the model declares of its results counts where onnx knows nothing of them.
    of_input : bool
        Whether they are made of an input that has no elements, where there is one, instead of a constant: an engine that computes
        constants ahead may die of those.
    """
    light = skeleton_of(Contents(model))
    if len(light.graph.node) != len(model.graph.node):
        light = model
    typed = infer(without_declared(light, steps=True)).graph
    for value, told in zip(typed.output, model.graph.output, strict=True):
        if _is_empty(value.type, kinds):
            told.type.CopyFrom(value.type)
        elif believes and not value.type.tensor_type.HasField("shape") and _is_empty(told.type, kinds):
            value.type.CopyFrom(told.type)
    source = _empty_input(model.graph) if of_input and opset >= _SHAPE_INPUT else None
    return list(_graph(model.graph, typed, {}, kinds, opset, source=source))


def _empty_input(graph: GraphProto) -> ValueInfoProto | None:
    """An input of a model that is known to have no elements, and may be cast to any type."""
    stored = {tensor.name for tensor in graph.initializer}
    return next((v for v in graph.input if v.name not in stored and _is_empty(v.type, _PLAIN)), None)


def _graph(
    graph: GraphProto,
    typed: GraphProto,
    outer: Mapping[str, TypeProto],
    kinds: frozenset[int],
    opset: int,
    kept: frozenset[str] = frozenset(),
    source: ValueInfoProto | None = None,
) -> Iterator[str]:
    types = {**outer, **{v.name: v.type for v in (*typed.value_info, *typed.input, *typed.output)}}
    nodes: list[NodeProto] = []
    count = 0
    for node, known in zip(graph.node, typed.node, strict=True):
        wanted = [name for name in node.output if name]
        own = node.op_type in _MADE or (
            node.op_type in _MADE_OF and any(name.endswith((_SUFFIX, _FLOAT)) for name in node.input)
        )
        own = own or not kept.isdisjoint(wanted) or node.op_type in _MISJUDGED
        own = own or (node.op_type in POOLS and opset < TOLD_OF_WINDOWS and may_leave_a_window_out(node))
        extreme = None if own or not wanted else _extreme_of_nothing(node, types, kinds)
        is_known = extreme is not None or _has_no_steps(node, types, kinds)
        if own or not wanted or not (is_known or all(_is_empty(types.get(name), kinds) for name in wanted)):
            for inner, inner_typed in zip(subgraphs(node), subgraphs(known), strict=True):
                results = frozenset(v.name for v in inner.output) if node.op_type in _STEPPING else frozenset()
                yield from _graph(inner, inner_typed, types, kinds, opset, results, source)
            nodes.append(node)
            continue
        count += 1
        for name in wanted:
            kind = types[name].tensor_type
            dims = [d.dim_value for d in kind.shape.dim]
            if source is not None and 0 in dims and _reshapes(source, dims, opset):
                nodes += _reshaped(source, name, dims, kind.elem_type, opset)
            else:
                nodes += nothing(name, dims, kind.elem_type, opset, extreme or 0)
        yield f"{node.op_type} {node.name or wanted[0]!r}"
    if count:
        put_back(graph, nodes)


def _is_empty(found: TypeProto | None, kinds: frozenset[int]) -> bool:
    return found is not None and _is_known(found, kinds) and any(d.dim_value == 0 for d in found.tensor_type.shape.dim)


def _is_known(found: TypeProto | None, kinds: frozenset[int]) -> bool:
    """Whether a value is a tensor of one of these types, and its shape is known."""
    if found is None or found.tensor_type.elem_type not in kinds or not found.tensor_type.HasField("shape"):
        return False
    return all(d.HasField("dim_value") for d in found.tensor_type.shape.dim)
