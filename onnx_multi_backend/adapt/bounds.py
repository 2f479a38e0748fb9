# SPDX-License-Identifier: Apache-2.0
"""The bounds of wide integer inputs within which an engine that computes in int32 is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.beyond_int32 import WIDE
from onnx_multi_backend.adapt.constant_values import of_tensor
from onnx_multi_backend.adapt.inference import infer
from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.adapt.ranges import ranges
from onnx_multi_backend.adapt.values import LIMITS, Value, of_type
from onnx_multi_backend.models.graph_walk import canonical, subgraphs

_T = TensorProto
_INT32 = LIMITS[_T.INT32]
_UNSIGNED = frozenset({_T.UINT32, _T.UINT64})
_HALF = frozenset({_T.INT32, _T.UINT32})

#: Operators that only move elements or count them, or whose low 32 bits depend on the low 32 bits of what they read alone.
_KEEPS_BITS = frozenset(
    {
        *("Identity", "Reshape", "Transpose", "Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Unsqueeze"),
        *("Flatten", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Compress", "Split", "Dropout", "Concat"),
        *("Where", "Add", "Sub", "Mul", "Equal", "Trilu", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
        *("BitCast", "If", "Shape", "Size", "SequenceConstruct", "SequenceLength"),
    }
)

#: A bound of fewer bits comes from products of what is not known, and is not held to.
_FEWEST_BITS = 5

#: Operators whose results depend on how many elements they sum.
_COUNTED = frozenset(
    {
        *("CumSum", "Einsum", "Gemm", "MatMul", "ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"),
        *("ScatterElements", "ScatterND"),
    }
)


#: Its squares may leave int32 where neither the elements nor the result do.
ROOT = "ReduceL2"


class Bound(NamedTuple):
    """What the elements of an input have to lie between.

    Attributes
    ----------
    low, high : int
    why : str
        What the message says behind these two.
    bits : int
        Of the input's type.
    products : sequence of (sequence of int or None)
        The axes of each ReduceProd that reads the input, whose results have to stay within int32; none for all of them, and
        None where any product may be made (they are not known, or it is a CumProd).
    """

    low: int
    high: int
    why: str
    bits: int = 64
    products: Sequence[Sequence[int] | None] = ()


class Bounds(NamedTuple):
    """The bounds by input.

    Attributes
    ----------
    of_inputs : dict of str to Bound
    overflows : list of NodeProto
        Those that leave int32 whatever the inputs are.
    wrapped : list of NodeProto
        Those that read an unsigned difference which may be below 0 and so wraps around.
    """

    of_inputs: dict[str, Bound]
    overflows: list[NodeProto]
    wrapped: list[NodeProto]


class Leaving:
    """Notes the nodes whose results leave int32, or that read an unsigned value beyond it, and the inputs that these are computed from."""

    def __init__(self) -> None:
        self.found: list[tuple[NodeProto, frozenset[str]]] = []
        self.wrapped: list[NodeProto] = []

    def __call__(self, node: NodeProto, operands: list[Value], made: Made) -> None:
        """Look at a node of any domain."""
        whole = made.whole
        if canonical(node.domain) or reads_product(node, operands):
            return
        if (
            whole is not None
            and (whole.elem_type in (_T.INT64, _T.UINT64) or (node.op_type == ROOT and whole.elem_type == _T.INT32))
            and whole.sources
            and whole.low is not None
            and not whole.in_int32
        ):
            self.found.append((node, whole.sources))
        elif not _keeps_bits(node, operands):
            for value in operands:
                outside = value.elem_type in _UNSIGNED and value.low is not None and not value.within(0, _INT32[1])
                if outside and value.sources:
                    self.found.append((node, value.sources))
                    if value.low is not None and value.low < 0:
                        self.wrapped.append(node)


def reads_product(node: NodeProto, operands: list[Value]) -> bool:
    """Whether it is the product of an input's own elements, which each run can be asked for."""
    return node.op_type in ("CumProd", "ReduceProd") and bool(operands) and operands[0].sources == {node.input[0]}


def _keeps_bits(node: NodeProto, operands: list[Value]) -> bool:
    """Whether the low 32 bits of a result depend on those of what the node reads alone."""
    if node.op_type == "BitShift":
        return any(a.name == "direction" and a.s == b"LEFT" for a in node.attribute)
    if node.op_type == "Cast":
        kept = WIDE | _HALF if operands[0].elem_type == _T.UINT64 else _HALF
        return any(a.name == "to" and a.i in kept for a in node.attribute)
    return node.op_type in _KEEPS_BITS


def largest(kind: int) -> Value:
    """What of an input's type the engine can be given."""
    low, high = LIMITS[kind]
    return of_type(kind) if kind == _T.UINT32 else Value(kind, max(low, _INT32[0]), min(high, _INT32[1]))


def as_inputs(graph: GraphProto, limits: Mapping[str, Value]) -> dict[str, Value]:
    """What `ranges` is given of inputs; a default counts, since OpenVINO makes a constant of it."""
    given = {v.name for v in graph.input}
    inputs = {name: value._replace(sources=frozenset({name})) for name, value in limits.items()}
    inputs.update({t.name: of_tensor(t) for t in graph.initializer if t.name in given})
    return inputs


def find_bounds(model: ModelProto, wide: Mapping[str, int], leaving: Leaving) -> Bounds:
    """The bounds within which no node leaves int32; they are lowered for the inputs that such a node is computed from.

    Parameters
    ----------
    model : onnx.ModelProto
        Without local functions.
    wide : mapping of str to int
        The types of the wide inputs by name.
    leaving : Leaving
        Of the model with the `largest` inputs.
    """
    limits = {name: largest(kind) for name, kind in wide.items()}
    lowered: set[str] = set()
    overflows: list[NodeProto] = []
    wrapped: list[NodeProto] = []
    counts: Callable[[NodeProto], int | None] | None = None
    for bits in range(31, -1, -1):
        if bits < 31:
            leaving = _leaving(model.graph, limits, counts)
        if not leaving.found:
            break
        if counts is None and any(node.op_type in _COUNTED for node, _ in leaving.found):
            counts = _counter(model)
            leaving = _leaving(model.graph, limits, counts)
        if bits == _FEWEST_BITS:
            wrapped = leaving.wrapped
        lowered |= {name for _, sources in leaving.found for name in sources}
        for name in lowered:
            limits[name] = Value(wide[name], 0 if wide[name] in _UNSIGNED else -(2**bits) + 1, 2**bits - 1)
    else:
        overflows = [node for node, _ in _leaving(model.graph, limits, counts).found]
    if not overflows and bits < _FEWEST_BITS:  # sizes that multiply sizes: so narrow a bound would refuse right runs
        limits.update({name: largest(wide[name]) for name in lowered})
        lowered = set()
    found: dict[str, Bound] = {}
    for name, kind in wide.items():
        value = limits[name]
        if value.low is None or value.high is None or (kind in _HALF and name not in lowered):
            continue
        why = ", beyond which a result computed from this input overflows" if name in lowered else ""
        found[name] = Bound(int(value.low), int(value.high), why, 32 if kind in _HALF else 64)
    return Bounds(found, overflows, wrapped)


def _leaving(
    graph: GraphProto, limits: Mapping[str, Value], counts: Callable[[NodeProto], int | None] | None
) -> Leaving:
    look = Leaving()
    ranges(graph, inputs=as_inputs(graph, limits), visit=look, count=counts or (lambda node: None))
    return look


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
