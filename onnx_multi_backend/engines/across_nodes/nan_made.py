# SPDX-License-Identifier: Apache-2.0
"""NaN that a model itself makes of numbers, such as the logarithm of a negative one, kept from operators that OpenVINO loses it in.

Guarding every such operator would cost each model time. An operator that reads what may make NaN, through no more than what passes
numbers on, is rare.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.float_names import float_names
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.special_values.nan_sources import Scope, may_make, plain, scopes
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back

#: Operators that lose NaN in an element, and in a row of elements.
_OF_ELEMENTS = frozenset({"Clip", "Exp", "HardSigmoid", "Max", "Min", "Relu"})
_OF_ROWS = frozenset({"LogSoftmax", "Softmax"})
#: Operators that are true of NaN, on some engines.
_COMPARING = frozenset({"Greater", "GreaterOrEqual"})
_SEVERAL = frozenset({"Max", "Min"}) | _COMPARING

#: The first opsets whose operators broadcast; with Where; in which Equal takes floating-point numbers; in which Softmax goes over one
#: axis, and ReduceSum has its axes as an input.
_OLDEST, _WHERE, _EQUAL, _OF_ONE_AXIS = 7, 9, 11, 13

_REASON = "OpenVINO loses the NaN that a node before it makes of numbers without a result"


def nan_kept(contents: Contents, *, compared: bool = False) -> Rewritten | None:
    """A copy of the model in which such NaN comes through; None where there is nothing to guard.

    Parameters
    ----------
    contents : Contents
    compared : bool
        Whether comparisons are true of NaN, and to be guarded too.
    """
    guarded = _OF_ELEMENTS | _OF_ROWS | (_COMPARING if compared else frozenset())
    if not contents.has(guarded) or not may_make(contents):
        return None
    opset = opset_versions(contents.model).get("", 1)
    if opset < _OLDEST:
        return None
    flat = typed_of(contents.model).flat
    floats = functools.cache(lambda: float_names(flat.graph))
    is_plain = flat is contents.model and not contents.holding
    looked_at = [plain(contents)] if is_plain else scopes(flat.graph)
    losing = contents.of(*guarded) if is_plain else None
    if not any(_lossy(scope, guarded, floats, losing) for scope in looked_at):
        return None
    known = walked_of(contents).types if opset < _OF_ONE_AXIS else {}
    copy = ModelProto()
    copy.CopyFrom(flat)
    added: dict[str, str] = {}
    for scope in scopes(copy.graph):
        _guard(scope, opset, _lossy(scope, guarded, floats), known, added)
    told = dict.fromkeys(added.values())
    changes = (Adaptation("nan_kept", where, "guarded against NaN", _REASON) for where in told)
    return Rewritten(copy, tuple(changes), frozenset(added))


def _lossy(
    scope: Scope, losing: frozenset[str], floats: Callable[[], set[str]], nodes: Iterable[NodeProto] | None = None
) -> Mapping[str, list[str]]:
    """Which of its inputs may hold such NaN, by the result of a node that would lose it; of these nodes, or of all.

    Softmax and comparisons often read a quotient, and guarding them would cost more than the operator: that is left out.
    """
    found = {}
    for node in scope.graph.node if nodes is None else nodes:
        if node.op_type not in losing or canonical(node.domain):
            continue
        read = node.input if node.op_type in _SEVERAL else node.input[:1]
        quotients = node.op_type in _OF_ELEMENTS
        made = [name for name in dict.fromkeys(read) if scope.may_be_nan(name, of_quotients=quotients)]
        if made and (made := [name for name in made if name in floats()]):
            found[node.output[0]] = made
    return found


def _guard(
    scope: Scope,
    opset: int,
    lossy: Mapping[str, list[str]],
    known: Mapping[str, TypeProto.Tensor],
    added: dict[str, str],
) -> None:
    """Do so in one graph; the types of values are needed in the older opsets only."""
    graph = scope.graph
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        read = lossy.get(node.output[0]) if node.output else None
        kind = known.get(node.output[0]) if node.output else None
        if read is None or (opset < _WHERE and (kind is None or not kind.elem_type)):
            continue
        if node.op_type in _OF_ROWS and opset < _OF_ONE_AXIS and not _axes_of_rows(node, kind):
            continue
        behind = list(_kept(node, read, graph, opset, kind))
        added |= dict.fromkeys((n.name for n in behind), f"{node.op_type} {node.name or behind[-1].output[0]!r}")
        nodes += behind
    if lossy:
        put_back(graph, nodes)


def _kept(
    node: NodeProto, read: list[str], graph: GraphProto, opset: int, kind: TypeProto.Tensor | None
) -> Iterator[NodeProto]:
    """The nodes behind a node, which gets another name for its result."""
    made = node.output[0]
    node.output[0] = result = f"{made}{CAST}lossy"
    if node.op_type in _OF_ROWS:  # an element that stays NaN makes the sum of its row NaN
        total = f"{made}{CAST}total"
        yield _total(node, result, total, graph, opset, kind)
        read = [total]
    for place, name in enumerate(read):
        kept = made if place == len(read) - 1 else f"{made}{CAST}kept{place}"
        number = f"{made}{CAST}number{place}"
        yield from _is_number(name, number, graph, opset)
        if node.op_type in _COMPARING:
            yield helper.make_node("And", [number, result], [kept], name=f"{made}{CAST}and{place}")
        elif opset >= _WHERE:
            yield helper.make_node("Where", [number, result, name], [kept], name=f"{made}{CAST}where{place}")
        else:
            yield from _times_number(number, result, kept, kind.elem_type if kind is not None else 0)
        result = kept


def _axes_of_rows(node: NodeProto, kind: TypeProto.Tensor | None) -> list[int]:
    """The axes that a node took together before it took one; none where the rank is not known."""
    rank = len(kind.shape.dim) if kind is not None and kind.HasField("shape") else 0
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    return list(range(axis + rank if axis < 0 else axis, rank))


def _total(
    node: NodeProto, result: str, total: str, graph: GraphProto, opset: int, kind: TypeProto.Tensor | None
) -> NodeProto:
    """The sum of each row of a node's result."""
    if opset < _OF_ONE_AXIS:
        axes = _axes_of_rows(node, kind)
        return helper.make_node("ReduceSum", [result], [total], name=total, axes=axes, keepdims=1)
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
    along = numpy_helper.from_array(np.array([axis], np.int64), f"{total}_axes")
    graph.initializer.append(along)
    return helper.make_node("ReduceSum", [result, along.name], [total], name=total, keepdims=1)


def _times_number(number: str, result: str, kept: str, kind: int) -> Iterator[NodeProto]:
    """A product with 1 where there is a number, and with 0 / 0 where there is none."""
    whole, one, cast = (f"{number}{what}" for what in ("whole", "one", "one_cast"))
    yield helper.make_node("Cast", [number], [whole], name=whole, to=TensorProto.FLOAT)
    yield helper.make_node("Div", [whole, whole], [one], name=one)
    yield helper.make_node("Cast", [one], [cast], name=cast, to=kind)
    yield helper.make_node("Mul", [result, cast], [kept], name=f"{number}times")


def _is_number(name: str, made: str, graph: GraphProto, opset: int) -> Iterator[NodeProto]:
    """Whether each element is a number. IsNaN would keep OpenVINO from folding what is computed of shapes, and its provider from more."""
    if opset >= _EQUAL:
        yield helper.make_node("Equal", [name, name], [made], name=made)
        return
    zero, below, cast = (f"{made}{what}" for what in ("zero", "below", "cast"))
    graph.initializer.extend(numpy_helper.from_array(np.array(v, np.float32), n) for v, n in ((0, zero), (-1, below)))
    yield helper.make_node("Cast", [name], [cast], name=cast, to=TensorProto.FLOAT)
    yield helper.make_node("Less", [cast, zero], [f"{made}left"], name=f"{made}left")
    yield helper.make_node("Less", [below, cast], [f"{made}right"], name=f"{made}right")
    yield helper.make_node("Or", [f"{made}left", f"{made}right"], [made], name=made)
