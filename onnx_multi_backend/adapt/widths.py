# SPDX-License-Identifier: Apache-2.0
"""What becomes of a model where an engine computes wide types in narrower ones: int64 in int32, float64 in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.ranges import Values, of_constant, of_tensor, ranges
from onnx_multi_backend.adapt.single_node import infer, inlined, reads
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.adapt.values import LIMITS, Value, of_type
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, subgraphs

_T = TensorProto
_INT32 = LIMITS[_T.INT32]

#: Of these types an engine with `Engine.narrows` keeps what int32 holds.
WIDE = frozenset({_T.INT64, _T.UINT64, _T.UINT32})
_UNSIGNED = frozenset({_T.UINT32, _T.UINT64})

#: Operators that only move elements, or whose low 32 bits depend on the low 32 bits of what they read alone.
_KEEPS_BITS = frozenset(
    {
        *("Identity", "Reshape", "Transpose", "Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Unsqueeze"),
        *(
            "Flatten",
            "Expand",
            "Tile",
            "DepthToSpace",
            "SpaceToDepth",
            "Compress",
            "Split",
            "Dropout",
            "Concat",
            "Where",
        ),
        *(
            "Add",
            "Sub",
            "Mul",
            "Equal",
            "Trilu",
            "BitwiseAnd",
            "BitwiseOr",
            "BitwiseXor",
            "BitwiseNot",
            "BitCast",
            "If",
            "Shape",
        ),
    }
)

#: A bound of fewer bits comes from products of what is not known, and is not held to.
_FEWEST_BITS = 5

#: Where a number beyond int32 means the same as the nearest one within: the ends of slices, the steps of a loop.
SATURATES: Mapping[str, tuple[int, ...]] = {"Slice": (1, 2), "Loop": (0,)}

#: Operators that look at the shape of their first input alone.
_SHAPE_ALONE = frozenset({"EyeLike", "Shape", "Size"})
#: OpenVINO limits a constant to int32. A number that a float32 holds compares with that as with the constant; others are rewritten.
_COMPARES = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

#: Operators through which such a number may pass on its way there.
_PASSES = frozenset({"Identity", "Unsqueeze", "Squeeze", "Reshape", "Concat"})


class Bound(NamedTuple):
    """What the elements of an input have to lie between.

    Attributes
    ----------
    low, high : int
    why : str
        What the message says behind these two.
    bits : int
        Of the input's type.
    """

    low: int
    high: int
    why: str
    bits: int = 64


class Concern(NamedTuple):
    """A node, and what the engine does to its numbers."""

    node: NodeProto
    words: str


@dataclass
class Study:
    """What an engine that computes wide types in narrower ones makes of a model.

    Attributes
    ----------
    bounds : dict of str to Bound
        By input.
    readers : dict of str to set of str
        The operators that compute with an input.
    constants, overflows, doubles : list of Concern
        Nodes that read constants beyond int32; that leave int32 whatever the inputs are; that compute with float64.
    in_doubt : bool
        Whether the engine may compute a node on integers wrongly.
    """

    bounds: dict[str, Bound] = field(default_factory=dict)
    readers: dict[str, set[str]] = field(default_factory=dict)
    constants: list[Concern] = field(default_factory=list)
    overflows: list[Concern] = field(default_factory=list)
    doubles: list[Concern] = field(default_factory=list)
    uncertain: bool = False


#: Whether an engine may compute a node wrongly that reads these values.
Suspects = Callable[[NodeProto, list[Value]], bool]


def study(model: ModelProto, may_have_defect: Suspects, *, narrows: bool) -> Study:
    """Look through a model.

    Parameters
    ----------
    may_have_defect : callable
    narrows : bool
        Whether the engine computes wide types in narrower ones.
    """
    found = Study()
    model = inlined(model)
    graph = model.graph
    wide = (
        {v.name: v.type.tensor_type.elem_type for v in graph.input if v.type.tensor_type.elem_type in WIDE}
        if narrows
        else {}
    )
    for tensor in graph.initializer:
        wide.pop(tensor.name, None)

    def look(node: NodeProto, operands: list[Value], whole: Value | None, values: Values) -> None:
        if not found.uncertain and may_have_defect(node, operands):
            found.uncertain = True
        if not narrows:
            return
        for value in operands if node.op_type not in _SHAPE_ALONE or canonical(node.domain) else ():
            for source in value.sources:
                found.readers.setdefault(source, set()).add(node.op_type)
        if any(v.elem_type == _T.DOUBLE for v in operands) or any(
            values.get(name, Value()).elem_type == _T.DOUBLE for name in node.output if name
        ):
            found.doubles.append(Concern(node, "float64 is computed in float32"))

    full = {name: _largest(kind)._replace(sources=frozenset({name})) for name, kind in wide.items()}
    if narrows:
        full.update(_defaults(graph))
    ranges(graph, inputs=full, visit=look)
    if not narrows:
        return found
    found.constants = list(_beyond(graph, {}))
    if wide:
        _find_bounds(model, wide, found)
    return found


def _defaults(graph: GraphProto) -> dict[str, Value]:
    """The inputs that have a default: it counts, since OpenVINO makes a constant of it."""
    given = {v.name for v in graph.input}
    return {t.name: of_tensor(t) for t in graph.initializer if t.name in given}


def _largest(kind: int) -> Value:
    """What of an input's type the engine can be given."""
    low, high = LIMITS[kind]
    return of_type(kind) if kind == _T.UINT32 else Value(kind, max(low, _INT32[0]), min(high, _INT32[1]))


def _find_bounds(model: ModelProto, wide: Mapping[str, int], found: Study) -> None:
    """The bounds within which no node leaves int32; they are lowered for the inputs that such a node is computed from."""
    limits = {name: _largest(kind) for name, kind in wide.items()}
    lowered: set[str] = set()
    counts: Callable[[NodeProto], int | None] | None = None
    for bits in range(31, -1, -1):
        beyond = _leaving(model.graph, limits, counts)
        if not beyond:
            break
        if counts is None and any(node.op_type in _COUNTED for node, _ in beyond):
            counts = _counter(model)
            beyond = _leaving(model.graph, limits, counts)
        lowered |= {name for _, sources in beyond for name in sources}
        for name in lowered:
            limits[name] = Value(wide[name], -(2**bits) + 1 if wide[name] == _T.INT64 else 0, 2**bits - 1)
    else:
        found.overflows = [
            Concern(node, "its result leaves what int32 holds") for node, _ in _leaving(model.graph, limits, counts)
        ]
    if (
        not found.overflows and bits < _FEWEST_BITS
    ):  # sizes that multiply sizes: so narrow a bound would refuse right runs
        limits.update({name: _largest(wide[name]) for name in lowered})
        lowered = set()
    for name, kind in wide.items():
        value = limits[name]
        if value.low is None or value.high is None or (kind == _T.UINT32 and name not in lowered):
            continue
        why = ", beyond which a result computed from this input overflows" if name in lowered else ""
        found.bounds[name] = Bound(int(value.low), int(value.high), why, 32 if kind == _T.UINT32 else 64)


_COUNTED = frozenset({"ReduceSum", "CumSum", "ReduceL1", "ReduceSumSquare", "MatMul", "Gemm"})


def _leaving(
    graph: GraphProto, limits: Mapping[str, Value], counts: Callable[[NodeProto], int | None] | None
) -> list[tuple[NodeProto, frozenset[str]]]:
    """The nodes whose results leave int32, and the inputs that these are computed from."""
    found: list[tuple[NodeProto, frozenset[str]]] = []

    def look(node: NodeProto, operands: list[Value], whole: Value | None, values: Values) -> None:
        if canonical(node.domain):
            return
        if (
            whole is not None
            and whole.elem_type in (_T.INT64, _T.UINT64)
            and whole.sources
            and whole.low is not None
            and not whole.in_int32
        ):
            found.append((node, whole.sources))
        elif node.op_type not in _KEEPS_BITS:
            for value in operands:
                outside = value.elem_type in _UNSIGNED and value.low is not None and not value.within(0, _INT32[1])
                if outside and value.sources:
                    found.append((node, value.sources))

    inputs = {name: value._replace(sources=frozenset({name})) for name, value in limits.items()}
    inputs.update(_defaults(graph))
    ranges(graph, inputs=inputs, visit=look, count=counts or (lambda node: None))
    return found


def _counter(model: ModelProto) -> Callable[[NodeProto], int | None]:
    """How many elements a node sums at most: those of its first input."""
    sizes: dict[str, int] = {}

    def look(graph: GraphProto) -> None:
        for value in (*graph.input, *graph.value_info, *graph.output):
            tensor = value.type.tensor_type
            if tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim):
                count = 1
                for dim in tensor.shape.dim:
                    count *= max(dim.dim_value, 1)
                sizes[value.name] = count
        for node in graph.node:
            for inner in subgraphs(node):
                look(inner)

    look(infer(model).graph)
    return lambda node: sizes.get(node.input[0]) if node.input else None


def _beyond(graph: GraphProto, outer: Mapping[str, Value]) -> Iterator[Concern]:
    """The nodes that read constants beyond int32, other than as bounds."""
    given = {v.name for v in graph.input}
    own = {
        t.name: value
        for t in graph.initializer
        if t.data_type in WIDE and (value := of_tensor(t)) != of_type(t.data_type)  # else it was not read
    }
    own.update(
        (node.output[0], made)
        for node in graph.node
        if node.op_type == "Constant" and not canonical(node.domain) and (made := of_constant(node)).elem_type in WIDE
    )
    known = {**{k: v for k, v in outer.items() if k not in given}, **{k: v for k, v in own.items() if not _fits(v)}}
    if known:
        results = {v.name for v in graph.output}
        for node in graph.node:
            for i, name in enumerate(node.input):
                if name in known and not _may_saturate(graph, node, i, known[name], results):
                    yield Concern(node, f"its constant {name!r} is beyond what int32 holds")
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _beyond(inner, known)


def reads_beyond(site: Site) -> bool:
    """Whether a node reads a constant beyond int32, other than as a bound."""
    if site.op_type in _SHAPE_ALONE:
        return False
    ends = {site.input(i) for i in SATURATES.get(site.op_type, ())}
    read = [site.value(name) for name in site.constants if name not in ends]
    return any(value.elem_type in WIDE and not _fits(value) for value in read)


def stays_within(model: ModelProto, concerns: Iterable[Concern]) -> bool:
    """Whether no other node reads wide integers of these nodes."""
    typed = infer(inlined(model)).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*typed.value_info, *typed.output)}
    read = {name for node in nodes_in(typed.node) for name in reads(node)}
    made = {name for concern in concerns for name in concern.node.output if name in read}
    return all(kinds.get(name, 0) not in WIDE | {0} for name in made)


def _fits(value: Value) -> bool:
    return value.in_int32


def _may_saturate(graph: GraphProto, node: NodeProto, index: int, value: Value, results: set[str]) -> bool:
    """Whether the nearest int32 does the same at this place."""
    kind = node.op_type
    if canonical(node.domain):
        return False
    if index in SATURATES.get(kind, ()) or kind in _SHAPE_ALONE or kind in _COMPARES:
        return True
    if kind == "CastLike" and index == 1:
        return True
    low, high = value.low or 0, value.high or 0
    if (kind == "Clip" and index == 1) or kind == "Max":
        return high <= _INT32[1]
    if (kind == "Clip" and index == 2) or kind == "Min":
        return (low >= _INT32[0] and value.elem_type == _T.INT64) or low >= 0
    if (kind in _PASSES and index == 0) or kind == "Concat":
        made = node.output[0]
        readers = [(n, i) for n in graph.node for i, name in enumerate(n.input) if name == made]
        return (
            made not in results
            and bool(readers)
            and all(_may_saturate(graph, n, i, value, results) for n, i in readers)
        )
    return False
