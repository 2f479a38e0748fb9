# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of axes that are moved or merged behind a reduction.

A reduction that drops its axes takes in what gives it back as many axes as it dropped, such as a Reshape, once what changes nothing is left
out. Where that has the rank of the reduction's result, and not its shape, it is lost: (4, 1) stays where (1, 4) should be, and (3, 2) where
(1, 6) should be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.adapt.unused_names import names_taken
from onnx_multi_backend.adapt.walked import inner_first, tensor_types, walked_of
from onnx_multi_backend.engines.across_nodes.apart import kept_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back

#: What moves axes.
_MOVING = frozenset({"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
#: What changes nothing where its other inputs are so, and is left out then; the first need not be the one that is passed on.
_OF_TWO = frozenset({"Add", "Div", "Mul", "Sub"})
_OF_ONE = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})
_PASSING = _OF_TWO | _OF_ONE | {"Cast", "Dropout", "Expand", "Identity", "Pad", "Slice", "Tile"}

#: A chain of these movers alone has another rank, or changes nothing.
_CHANGING_RANKS = frozenset({"Unsqueeze"}), frozenset({"Squeeze"})

#: Since these opsets Max takes integers, and ONNX Runtime has it of other types than float32.
_ANY_NUMBER, _ANY_FLOAT = 12, 8
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)

_Shape = Sequence[int | str | None] | None

_REASON = "OpenVINO would leave out what gives its result another shape of as many axes"


def axes_moved(contents: Contents, *, in_onnx_runtime: bool = False) -> Rewritten | None:
    """A copy of the model with the larger of a value and itself, which is that value, behind these reductions; None where there are none.

    `in_onnx_runtime`: whether its CPU provider may compute it, which has no Max of other types than float32 before opset 8.
    """
    if not contents.has(_MOVING) or not any(map(drops_axes, contents.nodes)):
        return None
    flat = typed_of(contents.model).flat
    moved = [_moved(graph) for graph in inner_first(flat.graph)]
    if not any(moved):
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    typed = walked_of(contents).typed_graphs
    everywhere = tensor_types(typed)
    taken = names_taken(flat)
    opset = opset_versions(flat).get("", 1)
    floats = _FLOATS if opset >= _ANY_FLOAT or not in_onnx_runtime else _FLOATS[:1]
    added: dict[str, str] = {}
    for graph, known, behind in zip(inner_first(copy.graph), typed, moved, strict=True):
        if behind:
            _keep(graph, behind, {**everywhere, **tensor_types([known])}, floats, opset >= _ANY_NUMBER, taken, added)
    changes = (Adaptation("axes_moved", where, "kept apart from what reads it", _REASON) for where in added.values())
    return Rewritten(copy, tuple(changes), frozenset(added)) if added else None


def drops_axes(node: NodeProto) -> bool:
    """Whether a node is a reduction without the axes that it reduces."""
    reduces = node.op_type.startswith("Reduce") and not canonical(node.domain)
    return reduces and any(a.name == "keepdims" and not a.i for a in node.attribute)


def _moved(graph: GraphProto) -> dict[str, list[str]]:
    """The reductions whose axes may be moved, by their results, and the values that may have as many axes."""
    reductions = [node.output[0] for node in graph.node if drops_axes(node)]
    if not reductions:
        return {}
    readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in _passed_on(node):
            readers[name].append(node)
    return {made: found for made in reductions if (found := list(_behind(made, readers)))}


def _passed_on(node: NodeProto) -> Sequence[str]:
    """The inputs that may come out of a node as they are, but for their shape."""
    if canonical(node.domain) or node.op_type not in _MOVING | _PASSING:
        return ()
    if node.op_type in _OF_TWO:
        return node.input
    return () if node.op_type in _OF_ONE and len(node.input) > 1 else node.input[:1]


def _behind(made: str, readers: Mapping[str, list[NodeProto]]) -> Iterator[str]:
    todo: list[tuple[str, frozenset[str]]] = [(made, frozenset())]
    seen = set(todo)
    while todo:
        name, before = todo.pop()
        for node in readers.get(name, ()):
            movers = before | ({node.op_type} & _MOVING)
            if movers and not any(movers <= changing for changing in _CHANGING_RANKS):
                yield node.output[0]
            if (step := (node.output[0], movers)) not in seen:
                seen.add(step)
                todo.append(step)


def _shape(kind: TypeProto.Tensor | None) -> _Shape:
    if kind is None or not kind.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in kind.shape.dim]


def _may_differ(before: _Shape, after: _Shape) -> bool:
    """Whether shapes of as many elements may have the same rank and be different."""
    if before is None or after is None:
        return True
    if len(before) != len(after):
        return False
    # A size that alone is not known to be the same is the same, since the number of elements is.
    return sum(a is None or a != b for a, b in zip(before, after, strict=True)) > 1


def _keep(
    graph: GraphProto,
    moved: Mapping[str, Sequence[str]],
    types: Mapping[str, TypeProto.Tensor],
    floats: Sequence[int],
    others: bool,
    taken: set[str],
    added: dict[str, str],
) -> None:
    """Do so in one graph, for these types, and what is of an unknown one if `others`; integers are kept apart elsewhere."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        made = node.output[0] if node.output else ""
        behind = moved.get(made, ())
        differs = any(_may_differ(_shape(types.get(made)), _shape(types.get(name))) for name in behind)
        elem_type = types[made].elem_type if made in types else 0
        if not differs or not (elem_type in floats if elem_type else others):
            continue
        nodes.append(kept_apart(node, 0, f"{CAST}axes", taken))
        added[nodes[-1].name] = f"{node.op_type} {node.name or made!r}"
    put_back(graph, nodes)
