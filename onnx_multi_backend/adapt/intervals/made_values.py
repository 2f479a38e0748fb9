# SPDX-License-Identifier: Apache-2.0
"""What the elements that a node makes lie between, by its operator."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

from onnx import TensorProto

from onnx_multi_backend.adapt.intervals.constant_values import of_tensor
from onnx_multi_backend.adapt.intervals.values import (
    BOOL,
    INDEX,
    LIMITS,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    WIDE_UNSIGNED,
    Value,
    arithmetic,
    bare,
    may_have_wrapped,
    of_type,
    union,
)
from onnx_multi_backend.adapt.operation import Made, Operation, by_schema, unknown
from onnx_multi_backend.models.tensors import WIDE

_T = TensorProto

#: Operators whose elements are those of their first input, and of these other ones; a sequence has those of its tensors.
MOVED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("Identity", "Reshape", "Transpose", "Gather", "GatherElements", "GatherND", "Slice"), (0,)),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "DepthToSpace", "SpaceToDepth"), (0,)),
    **dict.fromkeys(("Compress", "Split", "ReverseSequence", "Dropout", "Unique", "TopK", "MaxPool"), (0,)),
    **dict.fromkeys(("CenterCropPad", "ReduceMax", "ReduceMin", "Trilu", "Pad"), (0,)),
    **dict.fromkeys(("SplitToSequence", "SequenceAt", "SequenceErase", "ConcatFromSequence"), (0,)),
    **dict.fromkeys(("Optional", "OptionalGetElement"), (0,)),
    "SequenceInsert": (0, 1),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
    "Scatter": (0, 2),
    "TensorScatter": (0, 1),
    "Where": (1, 2),
    "OneHot": (2,),
    "Range": (0, 1),
}
_WITH_ZERO = frozenset({"CenterCropPad", "Trilu", "Pad"})
#: Operators that may compute with what they move.
_REDUCING = frozenset({"ScatterElements", "ScatterND", "Scatter", "TensorScatter"})
_INDICES = frozenset({"Shape", "Size", "NonZero", "ArgMax", "ArgMin", "SequenceLength", "NonMaxSuppression"})
_ARITHMETIC = frozenset({"Add", "Sub", "Sum", "Mul", "Div", "Mod", "Max", "Min", "MatMul"})
#: The same, of the first operand alone.
_UNARY = frozenset({"ReduceSum", "CumProd", "CumSum", "ReduceSumSquare", "ReduceProd", "ReduceL1"})
_ELEMENTWISE = frozenset({"Neg", "Abs", "Relu", "Floor", "Ceil", "Round"})
_BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})

#: The largest amount of a BitShift whose result is told, and the largest exponent.
_FURTHEST = 31
_LARGEST_EXPONENT = 64

_NOTHING = Value()
_INT32 = LIMITS[_T.INT32]
#: Types of which a float32 holds every number.
_SINGLE = frozenset({_T.FLOAT, _T.FLOAT16, _T.BFLOAT16})
#: What leaves a number as it is, or rounds it towards 0.
_KEEPING = frozenset(
    {
        "Cast",
        "CastLike",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)


#: None where an operator's schema says all there is.
_Rule = Callable[[Operation], "Made | None"]


def made_by(done: Operation) -> Made:
    """The values that a node makes."""
    rule = _RULES.get(done.kind)
    made = rule(done) if rule is not None else None
    made = made if made is not None else Made(by_schema(done))
    if done.kind not in _KEEPING and any(value.rounded for value in made.values):
        return made._replace(values=[value._replace(rounded=False) for value in made.values])
    return made


def _indices(done: Operation) -> Made:
    return Made([INDEX] * done.outputs)


def _branches(done: Operation) -> Made | None:
    if len(done.bodies) != 2:
        return None
    return Made(
        [
            union(found.get(graph.output[i].name, _NOTHING) for graph, found in done.bodies)
            if all(i < len(graph.output) for graph, _ in done.bodies)
            else _NOTHING
            for i in range(done.outputs)
        ]
    )


def _steps(done: Operation) -> Made | None:
    if not done.bodies:
        return None
    graph, found = done.bodies[0]
    outputs = list(graph.output)[1 if done.kind == "Loop" else 0 :]
    made = [found.get(v.name, _NOTHING) for v in outputs]
    types = [value.elem_type or v.type.tensor_type.elem_type for value, v in zip(made, outputs, strict=True)]
    wrapped = [value for value in (*done.operands, *made) if may_have_wrapped(value)]
    if not wrapped:
        sources = frozenset().union(*(value.sources for value in (*done.operands, *made)))
        return Made([unknown(t)._replace(sources=sources) if sources and t in WIDE else unknown(t) for t in types])
    sources = frozenset().union(*(value.sources for value in wrapped))
    return Made([Value(t, sources=sources, wrapped=True) if t in WIDE_UNSIGNED else unknown(t) for t in types])


def _cast(done: Operation) -> Made:
    made = _cut(done)
    if not done.operands or done.operands[0].elem_type not in _SINGLE or made.values[0].elem_type not in LIMITS:
        return made
    return Made([made.values[0]._replace(rounded=True)])


def _cut(done: Operation) -> Made:
    """What a Cast makes of the bounds."""
    if not done.operands:
        return Made([_NOTHING])
    if done.kind == "CastLike":
        elem_type = done.operands[1].elem_type if len(done.operands) > 1 else 0
    else:
        elem_type = next((a.i for a in done.node.attribute if a.name == "to"), 0)
    x, limits = done.operands[0], LIMITS.get(elem_type)
    if elem_type == _T.BOOL:
        return Made([BOOL])
    if elem_type in WIDE_UNSIGNED and x.elem_type in LIMITS and x.low is None:
        return Made([bare(elem_type)._replace(sources=x.sources, assumed=x.assumed, wrapped=_may_be_negative(x))])
    if elem_type in WIDE_UNSIGNED and x.elem_type in LIMITS and x.below_0:
        low, high = (min(max(v or 0, _INT32[0]), _INT32[1]) for v in (x.low, x.high))
        return Made([x._replace(elem_type=elem_type, low=low, high=high)])
    if limits is None or x.low is None or x.within(*limits):
        if x.low is None and limits is not None:
            return Made([unknown(elem_type)._replace(sources=x.sources, assumed=x.assumed)])
        if x is bare(x.elem_type):
            return Made([bare(elem_type)])
        if limits is not None and x.elem_type not in LIMITS and x.low is not None and x.high is not None:
            x = x._replace(low=math.trunc(x.low), high=math.trunc(x.high))
        return Made([x._replace(elem_type=elem_type)])
    return Made([of_type(elem_type)._replace(sources=x.sources, assumed=x.assumed)])


def _may_be_negative(x: Value) -> bool:
    return x.wrapped or LIMITS[x.elem_type][0] < 0


def _moved(done: Operation) -> Made | None:
    if not done.operands:
        return None
    read, kind = [done.read[i] for i in MOVED[done.kind] if i < len(done.read)], done.kind
    if kind == "Pad" and len(done.read) > 2 and done.node.input[2]:
        read.append(done.read[2])
    elif kind in _WITH_ZERO:
        read.append(Value(read[0].elem_type, 0, 0))
    data = union(read) if read else _NOTHING
    reduction = next((a.s for a in done.node.attribute if a.name == "reduction"), b"") if kind in _REDUCING else b""
    if reduction == b"add" and len(read) > 1 and data.elem_type in LIMITS:
        whole = arithmetic("Add", [read[0], arithmetic("ReduceSum", read[1:], done.summed(done.node))])
        return Made([_limited(whole)], whole)
    if reduction not in (b"", b"none", b"max", b"min"):
        data = unknown(data.elem_type)._replace(sources=data.sources)
    count = done.outputs
    if count == 1:
        return Made([data])
    if kind == "Split":
        return Made([data] * count)
    return Made([data, *[BOOL if kind == "Dropout" else INDEX] * (count - 1)])


def _bitwise(done: Operation) -> Made | None:
    operands = done.operands
    if not operands:
        return None
    if done.kind == "BitwiseAnd" and (masks := [v for v in operands if v.low is not None and v.low >= 0]):
        high = min(v.high for v in masks if v.high is not None)
        sources = frozenset().union(*(v.sources for v in operands))
        return Made([Value(operands[0].elem_type, 0, high, sources)])
    if all(v.low is not None for v in operands):
        return Made([_of_bits(operands)])
    kind, negative = operands[0].elem_type, [v.below_0 for v in operands]
    if kind not in WIDE_UNSIGNED or not {"BitwiseNot": True, "BitwiseAnd": all(negative)}.get(done.kind, any(negative)):
        return None
    return Made([Value(kind, sources=frozenset().union(*(v.sources for v in operands)), wrapped=True)])


def _of_bits(operands: list[Value]) -> Value:
    """As many bits as the widest operand has; of wide unsigned types `BitwiseNot` gives -1 - x, as a difference that leaves the type."""
    whole = union(operands)
    low, high = int(whole.low or 0), int(whole.high or 0)
    if len(operands) < 2 and whole.elem_type in WIDE_UNSIGNED:
        return whole._replace(low=-1 - high, high=-1 - low)
    bits = max((-low - 1).bit_length() if low < 0 else 0, high.bit_length() if high > 0 else 0)
    negative = low < 0 or len(operands) < 2
    return whole._replace(low=-(2**bits) if negative else 0, high=2**bits - 1)


def _clipped(done: Operation) -> Made | None:
    if not done.operands:
        return None
    x = done.read[0]
    low, high, sources = x.low, x.high, x.sources
    for i, bound in enumerate(done.read[1:3]):
        if bound.low is None or bound.high is None:
            continue
        sources |= bound.sources
        if i == 0:
            low = max(low, bound.low) if low is not None else None
            high = max(high, bound.high) if high is not None else None
        else:
            low = min(low, bound.low) if low is not None else None
            high = min(high, bound.high) if high is not None else None
    return Made([x._replace(low=low, high=high, sources=sources)])


def _shifted(done: Operation) -> Made | None:
    operands = done.operands
    to_the_left = any(a.name == "direction" and a.s == b"LEFT" for a in done.node.attribute)
    if len(operands) != 2 or operands[1].sources or not operands[1].within(0, _FURTHEST):
        if to_the_left and operands[0].elem_type == _T.UINT32:  # whose highest bit is the sign of an int32
            return Made([Value(_T.UINT32, sources=frozenset().union(*(v.sources for v in operands)), wrapped=True)])
        return None
    whole = arithmetic(SHIFT_LEFT if to_the_left else SHIFT_RIGHT, operands)
    return Made([_limited(whole)], whole)


def _computed(done: Operation) -> Made | None:
    operands = done.operands
    if not operands:
        return None
    first = operands[0]
    if first is bare(first.elem_type) and all(v is first for v in operands) and done.kind != "Sub":
        return Made([first], first)
    whole = arithmetic(done.kind, operands, done.summed(done.node))
    return Made([_limited(whole)], whole)


def _reduced(done: Operation) -> Made | None:
    return _computed(done._replace(operands=done.operands[:1])) if done.operands else None


def _mean(done: Operation) -> Made | None:
    """The sum may leave the type, though the mean does not."""
    if not done.operands:
        return None
    first = done.operands[0]
    return Made([first], arithmetic("ReduceSum", [first], done.summed(done.node)))


def _root(done: Operation) -> Made | None:
    """The same of squares and their root. Of int32, whose results mostly stay within, as few are summed as may be."""
    if not done.operands:
        return None
    first, count = done.operands[0], done.summed(done.node)
    least = 1 if first.elem_type == _T.INT32 and count is None else count
    return Made([_limited(arithmetic("ReduceL2", [first], count))], arithmetic("ReduceSumSquare", [first], least))


def _products(done: Operation) -> Made | None:
    """Gemm or Einsum."""
    if not done.operands or done.operands[0].elem_type not in LIMITS:
        return None
    count = done.summed(done.node)
    if done.kind == "Einsum":
        whole = functools.reduce(lambda a, b: arithmetic("Mul", [a, b]), done.operands)
        whole = arithmetic("ReduceSum", [whole], count)
        return Made([_limited(whole)], whole)
    if not all(math.isfinite(a.f) for a in done.node.attribute):
        return None
    factors = {a.name: Value(_T.INT64, -math.ceil(abs(a.f)), math.ceil(abs(a.f))) for a in done.node.attribute}
    one = Value(_T.INT64, 1, 1)
    whole = arithmetic("Mul", [arithmetic("Gemm", done.operands[:2], count), factors.get("alpha", one)])
    for third in done.operands[2:]:
        whole = arithmetic("Add", [whole, arithmetic("Mul", [third, factors.get("beta", one)])])
    return Made([_limited(whole)], whole)


def _powered(done: Operation) -> Made | None:
    """To a power that is known to be small; of an integer, a negative power is -1, 0 or 1."""
    if len(done.operands) != 2:
        return None
    base, exponent = done.operands
    least = -math.inf if base.elem_type in LIMITS else 0
    if base.low is None or base.high is None or exponent.sources or not exponent.within(least, _LARGEST_EXPONENT):
        return None
    if exponent.high is not None and exponent.high <= 1:
        return Made([base._replace(low=min(base.low, 0), high=max(base.high, 1))])
    try:
        most = max(abs(base.low), abs(base.high), 1) ** max(0, math.ceil(exponent.high or 0))
    except OverflowError:  # of float64
        return None
    whole = base._replace(low=-most if base.low < 0 else 0, high=most)
    return Made([_limited(whole)], whole)


def _limited(value: Value) -> Value:
    """What a type makes of a result that may leave its range."""
    limits = LIMITS.get(value.elem_type)
    if limits is None or value.low is None or value.within(*limits):
        return value
    if value.elem_type in WIDE_UNSIGNED and value.within(LIMITS[_T.INT64][0], limits[1]):
        return value  # below 0: `bounds` asks who reads it
    return value._replace(low=limits[0], high=limits[1])


def _filled(done: Operation) -> Made:
    tensor = next((a.t for a in done.node.attribute if a.name == "value"), None)
    return Made([of_tensor(tensor) if tensor is not None else Value(_T.FLOAT, 0, 0)])


def _joined(done: Operation) -> Made | None:
    return Made([union(done.read)]) if done.read else None


_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(_INDICES, _indices),
    **dict.fromkeys(MOVED, _moved),
    **dict.fromkeys(_BITWISE, _bitwise),
    **dict.fromkeys(_ARITHMETIC | _ELEMENTWISE, _computed),
    **dict.fromkeys(_UNARY, _reduced),
    "BitShift": _shifted,
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clipped,
    "Concat": _joined,
    "ConstantOfShape": _filled,
    **dict.fromkeys(("Einsum", "Gemm"), _products),
    "If": _branches,
    "Loop": _steps,
    "Pow": _powered,
    "ReduceL2": _root,
    "ReduceMean": _mean,
    "Scan": _steps,
    "SequenceConstruct": _joined,
}
