# SPDX-License-Identifier: Apache-2.0
"""Recipes: operators that work element by element, and reductions."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import NoFitError, Value
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.recipes import recipe

UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor HardSwish Identity IsNaN Log Mish Neg "
    "Not Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh"
).split()
WITH_FLOATS = {
    "Celu": {"alpha": (0.5, 1.0, 2.0)},
    "Elu": {"alpha": (0.5, 1.0, 2.0, 0.0)},
    "Gelu": {"approximate": ("none", "tanh")},
    "HardSigmoid": {"alpha": (0.2, 0.5, 1.0), "beta": (0.5, 0.0, 0.6)},
    "IsInf": {"detect_negative": (0, 1), "detect_positive": (0, 1)},
    "LeakyRelu": {"alpha": (0.01, 0.5, 2.0, -1.0)},
    "Selu": {"alpha": (1.5, 1.0), "gamma": (1.0, 1.1)},
    "Shrink": {"bias": (0.0, 0.5), "lambd": (0.5, 1.5)},
    "Swish": {"alpha": (1.0, 0.5, 2.0)},
    "ThresholdedRelu": {"alpha": (1.0, 0.5, 0.0)},
}
BINARY = "Add Sub Mul And Or Xor Equal Less Greater LessOrEqual GreaterOrEqual BitwiseAnd BitwiseOr BitwiseXor StringConcat".split()
REDUCE = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
).split()


@recipe(*UNARY)
def unary(d: Draft) -> list[Value]:
    d.x(d.schema.inputs[0].type_str)
    return d.done()


@recipe(*WITH_FLOATS)
def unary_with_attributes(d: Draft) -> list[Value]:
    d.x(d.schema.inputs[0].type_str)
    for name, choices in WITH_FLOATS[d.op_type].items():
        d.attr(name, d.rng.choice(choices), 0.6)
    return d.done()


@recipe(*BINARY)
def binary(d: Draft) -> list[Value]:
    operands(d, 2)
    return d.done()


def operands(d: Draft, count: int, *, broadcast: bool = True) -> None:
    """Operands of one type that broadcast to the first or the second one's shape."""
    first = d.x()
    assert first.dims is not None
    for _ in range(count - 1):
        d.x(dims=d.broadcast_to(first.dims) if broadcast else first.dims)
    if d.b.chance(0.3):
        d.inputs.reverse()


def nonzero(array: np.ndarray) -> np.ndarray:
    """No zeros, and for integers no -1, by which the smallest one cannot be divided."""
    if array.dtype.kind in "iu":
        return np.where((array == 0) | (array == np.array(-1).astype(array.dtype)), np.array(3, array.dtype), array)
    return np.where(array == 0, np.array(0.5, array.dtype), array)


@recipe("Div", "Mod")
def division(d: Draft) -> list[Value]:
    first = d.x()
    assert first.dims is not None
    fmod = first.kind in v.FLOATS or d.b.chance(0.3)
    if d.op_type == "Mod":
        d.attr("fmod", int(fmod))
    d.x(dims=d.broadcast_to(first.dims), reuse=False, data=nonzero if first.kind in v.INTEGERS else None)
    return d.done()


@recipe("Pow")
def power(d: Draft) -> list[Value]:
    base = d.x(profile="ordinary")
    assert base.dims is not None
    second = "T1" if "T1" in d.by_variable else "T"
    d.x(second, dims=d.broadcast_to(base.dims), reuse=False, data=lambda a: np.abs(np.round(a.astype(float))) % 4)
    return d.done()


@recipe("BitShift")
def bit_shift(d: Draft) -> list[Value]:
    first = d.x()
    assert first.dims is not None
    bits = 8 * v.np_dtype(first.kind).itemsize
    d.x(dims=d.broadcast_to(first.dims), reuse=False, data=lambda a: np.abs(a.astype(np.int64)) % bits)
    d.attr("direction", d.rng.choice(("LEFT", "RIGHT")))
    return d.done()


@recipe("PRelu")
def prelu(d: Draft) -> list[Value]:
    first = d.x(least=0)
    assert first.dims is not None
    d.x(dims=d.broadcast_to(first.dims), reuse=False)
    return d.done()


@recipe("Max", "Min", "Mean", "Sum")
def variadic(d: Draft) -> list[Value]:
    # They broadcast since opset 8.
    operands(d, d.rng.choice((1, 2, 2, 2, 3)), broadcast=d.since >= 8)
    return d.done()


@recipe("Where")
def where(d: Draft) -> list[Value]:
    first = d.x("T")
    assert first.dims is not None
    second = d.x("T", dims=d.broadcast_to(first.dims))
    condition = d.x("B", dims=d.broadcast_to(first.dims))
    d.inputs = [condition, first, second] if d.b.chance(0.5) else [condition, second, first]
    return d.done()


@recipe("Clip")
def clip(d: Draft) -> list[Value]:
    first = d.x()
    low, high = (0, 6) if d.b.chance(0.5) or first.kind not in v.FLOATS else (-1.5, 2.5)
    if d.since < 11:
        d.attr("min", float(low), 0.7)
        d.attr("max", float(high), 0.7)
        return d.done()
    for bound in (low, high):
        if d.b.chance(0.75):
            d.given(bound, kind=first.kind)
        else:
            d.skip()
    return d.done()


@recipe(*REDUCE)
def reduce(d: Draft) -> list[Value]:
    first = d.x(least=0 if d.op_type in ("ReduceSum", "ReduceProd") else 1)
    assert first.dims is not None
    rank = len(first.dims)
    d.attr("keepdims", d.rng.randrange(2), 0.6)
    if d.b.chance(0.8) and rank:
        axes = d.axes(rank)
        if "axes" in d.schema.attributes:
            d.attr("axes", axes)
        else:
            d.given(axes)
            d.attr("noop_with_empty_axes", d.rng.randrange(2), 0.2)
    elif "axes" not in d.schema.attributes and d.b.chance(0.3):
        if d.b.chance(0.5):
            d.given([])
        d.attr("noop_with_empty_axes", d.rng.randrange(2), 0.5)
    return d.done()


@recipe("ArgMax", "ArgMin")
def arg_max(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4), least=1)
    assert first.dims is not None
    d.attr("axis", d.axis(len(first.dims)), 0.8)
    d.attr("keepdims", d.rng.randrange(2), 0.6)
    d.attr("select_last_index", d.rng.randrange(2), 0.4)
    return d.done()


@recipe("CumSum", "CumProd")
def cumulative(d: Draft) -> list[Value]:
    first = d.x("T", ranks=(1, 2, 3))
    assert first.dims is not None
    d.given(d.axis(len(first.dims), negative_since=0), kind=d.rng.choice((TensorProto.INT32, TensorProto.INT64)))
    d.attr("exclusive", d.rng.randrange(2), 0.5)
    d.attr("reverse", d.rng.randrange(2), 0.5)
    return d.done()


@recipe("Softmax", "LogSoftmax", "Hardmax")
def softmax(d: Draft) -> list[Value]:
    first = d.x(ranks=(1, 2, 3, 4), least=1)
    assert first.dims is not None
    d.attr("axis", d.axis(len(first.dims)), 0.8)
    if "axis" not in d.attributes and d.since < 13 and len(first.dims) < 2:
        d.attr("axis", 0)
    return d.done()


@recipe("Cast", "CastLike", "BitCast")
def cast(d: Draft) -> list[Value]:
    first = d.x("T1", profile="ordinary")
    if first.kind == TensorProto.STRING:
        raise NoFitError("a string need not be a number")
    to = d.kind("T2", [k for k in d.allowed("T2") if k != TensorProto.STRING])
    if d.op_type == "CastLike":
        d.x("T2", dims=((1, 1),), reuse=False)
        return d.done()
    if d.op_type == "BitCast" and v.np_dtype(to).itemsize != v.np_dtype(first.kind).itemsize:
        raise NoFitError("another size")
    d.attr("to", to)
    d.attr("saturate", d.rng.randrange(2), 0.3)
    return d.done()
