# SPDX-License-Identifier: Apache-2.0
"""Constants beyond what int32 holds, and the places where the nearest int32 does the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.constant_values import of_constant, of_tensor
from onnx_multi_backend.adapt.intervals.values import LIMITS, Value
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.graph_walk import canonical, may_hold_graphs, subgraphs
from onnx_multi_backend.models.tensors import WIDE

_T = TensorProto
_INT32 = LIMITS[_T.INT32]

#: Where a number beyond int32 means the same as the nearest one within: the ends of slices, the steps of a loop.
SATURATES: Mapping[str, tuple[int, ...]] = {"Slice": (1, 2), "Loop": (0,), "NonMaxSuppression": (2,)}

#: Operators that look at the shape of their first input alone.
SHAPE_ALONE = frozenset({"EyeLike", "Shape", "Size"})
#: OpenVINO limits a constant to int32. A number that a float32 holds compares with that as with the constant; others are rewritten.
_COMPARES = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

#: Operators through which such a number may pass on its way there.
_PASSES = frozenset({"Identity", "Unsqueeze", "Squeeze", "Reshape", "Concat"})


def readers_of_constants_beyond(
    graph: GraphProto, outer: Mapping[str, Value], *, inside: bool = False
) -> Iterator[tuple[NodeProto, str]]:
    """The nodes that read constants beyond int32, other than as bounds, and the constant's name; a Constant for one that is a result of the model.

    Parameters
    ----------
    outer : mapping of str to Value
        Such constants of the graphs around it.
    inside : bool
        Whether there are any.
    """
    given = {v.name for v in graph.input}
    own = _held(graph)
    inner: list[GraphProto] = []
    filled: set[str] = set()
    for node in graph.node:
        kind = node.op_type
        if kind == "ConstantOfShape" and _may_be_wide(node) and (made := _filling(node)) is not None:
            own[node.output[0]] = made
            filled.add(node.output[0])
        elif node.domain or may_hold_graphs(kind):
            inner += subgraphs(node)
    known = {
        **{k: v for k, v in outer.items() if k not in given},
        **{k: v for k, v in own.items() if not v.in_int32},
    }
    for node in graph.node if inner else ():
        known.update(_given_back(node, known))
    if known:
        results = {v.name for v in graph.output}
        for node in graph.node:
            for i, name in enumerate(node.input):
                if name not in known:
                    continue
                compared = name in filled and node.op_type in _COMPARES  # no rule writes it in another way
                if compared or not _may_saturate(graph, node, i, known, results):
                    yield node, name
        for name in () if inside else sorted(results & known.keys()):
            yield NodeProto(op_type="Constant", output=[name]), name
    for body in inner:
        yield from readers_of_constants_beyond(body, known, inside=True)


def _held(graph: GraphProto) -> dict[str, Value]:
    """The wide integers that a graph holds itself."""
    found = {
        t.name: of_tensor(t)
        for t in graph.initializer
        if t.data_type in WIDE and t.data_location != _T.EXTERNAL  # else it is not read
    }
    for node in graph.node:
        if node.op_type == "Constant" and _may_be_wide(node) and (made := of_constant(node)).elem_type in WIDE:
            found[node.output[0]] = made
    return found


def _filling(node: NodeProto) -> Value | None:
    """What a ConstantOfShape fills a tensor with; None for float32, which it does where nothing is named."""
    return of_tensor(node.attribute[0].t) if len(node.attribute) == 1 and node.attribute[0].HasField("t") else None


def _given_back(node: NodeProto, outer: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """The results of a branch, or of a loop's steps, that are constants beyond int32 of its own or of the graphs around it."""
    first = 1 if node.op_type == "Loop" else 0  # whether it goes on
    for body in subgraphs(node):
        held = _held(body)
        inside = {*held, *(v.name for v in body.input), *(name for n in body.node for name in n.output)}
        for result, name in zip(body.output[first:], node.output, strict=False):
            value = held.get(result.name) or (outer.get(result.name) if result.name not in inside else None)
            if name and value is not None and not value.in_int32:
                yield name, value


def _may_be_wide(constant: NodeProto) -> bool:
    """Whether a Constant may hold wide integers: its values need not be read to tell."""
    return not canonical(constant.domain) and all(
        not a.HasField("t") or a.t.data_type in WIDE for a in constant.attribute
    )


def reads_beyond(site: Site) -> bool:
    """Whether a node reads a constant beyond int32, other than as a bound."""
    if site.op_type in SHAPE_ALONE:
        return False
    ends = {site.input(i) for i in SATURATES.get(site.op_type, ())}
    read = [site.value(name) for name in site.constants if name not in ends]
    return any(value.elem_type in WIDE and not value.in_int32 for value in read)


def _may_saturate(
    graph: GraphProto, node: NodeProto, index: int, beyond: Mapping[str, Value], results: set[str], name: str = ""
) -> bool:
    """Whether the nearest int32 of a constant, which may have come here under another name, does the same at this place."""
    kind, value = node.op_type, beyond[name or node.input[index]]
    if canonical(node.domain):
        return False
    if index in SATURATES.get(kind, ()) or kind in SHAPE_ALONE or kind in _COMPARES:
        return True
    if kind == "NonZero" or (kind == "CastLike" and index == 1):
        return True
    if kind in ("Max", "Min") and {*beyond, node.input[index]} >= set(node.input):  # none of them is within
        return False
    low, high = value.low or 0, value.high or 0
    if (kind == "Clip" and index == 1) or kind == "Max":
        return high <= _INT32[1]
    if (kind == "Clip" and index == 2) or kind == "Min":
        return (low >= _INT32[0] and value.elem_type == _T.INT64) or low >= 0
    if (kind in _PASSES and index == 0) or kind == "Concat" or (kind == "Where" and index > 0):
        made = node.output[0]
        readers = [(n, i) for n in graph.node for i, name in enumerate(n.input) if name == made]
        return (
            made not in results
            and bool(readers)
            and all(_may_saturate(graph, n, i, beyond, results, name or node.input[index]) for n, i in readers)
        )
    return False
