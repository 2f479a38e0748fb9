# SPDX-License-Identifier: Apache-2.0
"""Pass: tensors of a type that an engine computes nothing with are carried in a wider type."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from onnx import GraphProto, NodeProto, ValueInfoProto

from onnx_multi_backend.adapt.passes.wider_types import FLOATS, INTEGERS, OnWiderTypes, widened
from onnx_multi_backend.adapt.single_node import Scope, infer, scope_of
from onnx_multi_backend.adapt.work import Adaptation, BoundaryType, Work
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.external_data import load_values
from onnx_multi_backend.models.graph_walk import all_tensors, put_back, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import is_endless
from onnx_multi_backend.models.tensors import WIDER, element_name

#: What makes tensors of a type that an attribute names by its number.
_MAKERS = frozenset({"Cast", "EyeLike", "QuantizeLinear"})
_KINDS = frozenset({*FLOATS, *INTEGERS})
#: What makes other numbers of narrow ones.
_READ = frozenset({"Cast", "CastLike", "DequantizeLinear"})


def carried_types(work: Work) -> None:
    """Carry every value of a narrow type as the same number of a wider type, and round where a value becomes narrow.

    Nodes that only move values need no change; those that convert get the rounding written out: to the nearest, ties to
    even, saturating where the Cast does. Source: the documentation of Cast, QuantizeLinear, DequantizeLinear.
    """
    occurring = _occurring(work.contents)
    if _is_told_by_callers(work.contents):
        occurring = _occurring(Contents(inlined(work.model)))
    kinds = {
        kind
        for kind, made in occurring.items()
        if work.limits.needs_carrier(kind, cast_to=made != _Made.NOT, saturate=made != _Made.UNSATURATED)
    }
    given = {name: kind for name, kind in _narrow(work.model.graph.input).items() if not work.limits.moves(kind)}
    if given:
        moved = {name for node in work.contents.nodes if node.op_type not in _READ for name in node.input}
        kinds.update(kind for name, kind in given.items() if name in moved)
    kept = {kind for kind in _narrow(work.model.graph.output).values() if not work.limits.gives_back(kind)}
    if not kinds and not kept:
        return
    flat = inlined(work.model)
    kinds |= kept & _passed_on(flat.graph)
    if not kinds:
        return
    if flat.functions or is_endless(work.contents):
        return  # left to the engine to refuse
    if work.model.functions:
        work.inline(flat, "types of values are to be changed in it")
    typed = infer(work.model)
    graph = work.edit().graph
    for tensor in all_tensors(work.model):
        if tensor.data_type in kinds and work.path is not None:
            load_values(tensor, work.path)
    for where, values, edges in (("input", graph.input, work.inputs), ("output", graph.output, work.outputs)):
        for value in values:
            kind = value.type.tensor_type.elem_type
            if kind in kinds:
                value.type.tensor_type.elem_type = WIDER[kind]
                edges[value.name] = BoundaryType(value.name, WIDER[kind])
                change = f"carried as {element_name(WIDER[kind])}"
                work.changes.append(Adaptation("carried_types", f"{where} {value.name}", change, _reason(kind)))
    _carry(graph, typed.graph, scope_of(typed), kinds, work)


def _carry(graph: GraphProto, typed: GraphProto, scope: Scope, kinds: set[int], work: Work) -> None:
    """Rewrite a graph and its subgraphs; ``typed`` is the same graph with the types of its values."""
    del graph.value_info[:]
    for tensor in graph.initializer:
        if tensor.data_type in kinds:
            tensor.CopyFrom(widened(tensor))
    nodes = []
    for node, with_types in zip(graph.node, typed.node, strict=True):
        for inner, inner_typed in zip(subgraphs(node), subgraphs(with_types), strict=True):
            for value in (*inner.input, *inner.output):
                if value.type.tensor_type.elem_type in kinds:
                    value.type.tensor_type.elem_type = WIDER[value.type.tensor_type.elem_type]
            _carry(inner, inner_typed, scope.inside(inner_typed), kinds, work)
        made = list(OnWiderTypes(node, scope, kinds).nodes())
        nodes += made
        if made != [node]:
            operators = ", ".join(dict.fromkeys(n.op_type for n in made))
            where = node.name or f"{node.op_type} (output {node.output[0]!r})"
            reason = _reason(*sorted(kinds))
            work.changes.append(Adaptation("carried_types", where, f"written with {operators}", reason))
    put_back(graph, nodes)


def _reason(*kinds: int) -> str:
    return f"the engine does not compute rightly with {', '.join(map(element_name, kinds))}"


class _Made(enum.IntEnum):
    """Whether nodes make values of a narrow type from another one, and what becomes of those that are too large."""

    NOT = 0
    SATURATED = 1
    UNSATURATED = 2


#: Attributes that name a type by its number.
_NAMING = frozenset({"to", "output_dtype", "dtype"})

#: Operators that take the type they make from another input.
_LIKE = frozenset({"CastLike", "QuantizeLinear"})


def _is_told_by_callers(contents: Contents) -> bool:
    """Whether a function leaves a type to whoever calls it."""
    return any(a.ref_attr_name for node in contents.of(*_MAKERS) for a in node.attribute)


def _occurring(contents: Contents) -> dict[int, _Made]:
    """The narrow types in a model, and how nodes make values of each from another type."""
    graph = contents.model.graph
    found = {v.type.tensor_type.elem_type: _Made.NOT for v in (*graph.input, *graph.output)}
    found.update((kind, _Made.NOT) for kind in contents.tensor_types)
    for node in contents.of(*_MAKERS):
        for kind in (attribute.i for attribute in node.attribute if attribute.name in _NAMING):
            found[kind] = max(found.get(kind, _Made.NOT), _how(node))
    for node in contents.of(*_LIKE):  # another input may say the type
        made = _how(node)
        found = {kind: max(before, made) for kind, before in found.items()}
    return {kind: made for kind, made in found.items() if kind in _KINDS}


def _passed_on(graph: GraphProto) -> set[int]:
    """The narrow types of results that are not made there, of another type."""
    made = {name for node in graph.node if node.op_type in _MAKERS | _LIKE for name in node.output}
    return {kind for name, kind in _narrow(graph.output).items() if name not in made}


def _narrow(values: Iterable[ValueInfoProto]) -> dict[str, int]:
    """Those of a narrow type, by name."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    return {name: kind for name, kind in kinds.items() if kind in _KINDS}


def _how(node: NodeProto) -> _Made:
    if node.op_type not in ("Cast", "CastLike", "QuantizeLinear"):
        return _Made.NOT
    saturates = all(a.i for a in node.attribute if a.name == "saturate")
    return _Made.SATURATED if saturates else _Made.UNSATURATED
