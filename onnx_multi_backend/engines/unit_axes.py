# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of axes of size 1 that are moved behind a reduction.

A reduction that drops its axes takes in a Reshape or Transpose behind it that would give it back an axis of size 1 where one was dropped. Only
their number is compared: what turns (4, 1) into (1, 4) is left out too, and the result keeps its shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.inference import infer
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.apart import inner_first, larger
from onnx_multi_backend.engines.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

#: What moves axes, or passes on what is moved.
_MOVING = frozenset({"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_FOLLOWED = _MOVING | {"Identity"}

#: Alone, these change the number of axes, or nothing.
_CHANGING_RANKS = frozenset({"Identity", "Unsqueeze"}), frozenset({"Identity", "Squeeze"})

_Shape = Sequence[int | str | None] | None

_REASON = "OpenVINO would leave out what moves axes of size 1 behind the reduction"


def axes_moved(contents: Contents) -> Rewritten | None:
    """A copy of the model with the larger of a value and itself, which is that value, behind these reductions; None where there are none."""
    if not contents.has(_MOVING) or not any(map(_drops_axes, contents.nodes)) or expands_too_far(contents.model):
        return None
    flat = inlined(contents.model)
    if not any(_moved(graph) for graph in inner_first(flat.graph)):
        return None
    floats = Facts(flat).floats
    copy = ModelProto()
    copy.CopyFrom(flat)
    shapes = _shapes(infer(flat))
    added: dict[str, str] = {}
    for graph in inner_first(copy.graph):
        _keep(graph, shapes, floats, added)
    changes = (Adaptation("axes_moved", where, "kept apart from what reads it", _REASON) for where in added.values())
    return Rewritten(copy, tuple(changes), frozenset(added)) if added else None


def _drops_axes(node: NodeProto) -> bool:
    reduces = node.op_type.startswith("Reduce") and not canonical(node.domain)
    return reduces and any(a.name == "keepdims" and not a.i for a in node.attribute)


def _moved(graph: GraphProto) -> dict[str, list[str]]:
    """The reductions whose axes may be moved, by their results, and the values that may have as many axes."""
    reductions = [node.output[0] for node in graph.node if _drops_axes(node)]
    if not reductions:
        return {}
    readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        if node.op_type in _FOLLOWED and not canonical(node.domain) and node.input:
            readers[node.input[0]].append(node)
    return {made: found for made in reductions if (found := list(_behind(made, readers)))}


def _behind(made: str, readers: Mapping[str, list[NodeProto]]) -> Iterator[str]:
    todo: list[tuple[str, frozenset[str]]] = [(made, frozenset())]
    while todo:
        name, before = todo.pop()
        for node in readers.get(name, ()):
            kinds = before | {node.op_type}
            if not any(kinds <= changing for changing in _CHANGING_RANKS):
                yield node.output[0]
            todo.append((node.output[0], kinds))


def _shapes(model: ModelProto) -> Mapping[str, _Shape]:
    """The shapes of values, as far as they are known; of those that share a name, any."""
    values = (v for graph in inner_first(model.graph) for v in (*graph.value_info, *graph.output))
    return {
        v.name: [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in v.type.tensor_type.shape.dim]
        for v in values
        if v.type.tensor_type.HasField("shape")
    }


def _may_move_units(before: _Shape, after: _Shape) -> bool:
    """Whether a value may have become another shape of as many axes, of which only those of size 1 moved."""
    if before is None or after is None:
        return True
    if len(before) != len(after) or all(isinstance(size, int) and size != 1 for size in before):
        return False
    other = [(a, b) for a, b in zip(before, after, strict=True) if a is None or a != b]
    return len(other) > 1  # as many elements: what is not known to be the same in one place alone is


def _keep(graph: GraphProto, shapes: Mapping[str, _Shape], floats: set[str], added: dict[str, str]) -> None:
    moved = _moved(graph)
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        made = node.output[0] if node.output else ""
        if made not in floats or not any(
            _may_move_units(shapes.get(made), shapes.get(name)) for name in moved.get(made, ())
        ):
            continue
        node.output[0] = apart = f"{made}{CAST}axes"
        nodes.append(larger(apart, made, name=apart))
        added[apart] = f"{node.op_type} {node.name or made!r}"
    put_back(graph, nodes)
