# SPDX-License-Identifier: Apache-2.0
"""The steps of a chain that are one node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs.builder import NoFitError, Value
from backend_test.search.graphs.chains.chain import Chain

Step = Callable[[Chain, Value], Value]

#: Each step, as often as it is to be drawn.
STEPS: list[Step] = []

UNARY = (
    "Abs Erf Exp Floor HardSigmoid HardSwish Identity LeakyRelu Neg Reciprocal Relu Round Selu Sigmoid Sign Sin "
    "Softplus Softsign Sqrt Tanh Elu Mish Gelu"
).split()


def step(times: int = 1) -> Callable[[Step], Step]:
    """Enter a step into the table."""

    def enter(made: Step) -> Step:
        STEPS.extend([made] * times)
        return made

    return enter


@step(4)
def unary(c: Chain, x: Value) -> Value:
    name = c.rng.choice(UNARY)
    if name in ("Sqrt", "Reciprocal"):
        x = c.node("Add", c.node("Abs", x), c.scalar(x, 0.5))
    return c.node(name, x)


@step(8)
def with_operand(c: Chain, x: Value) -> Value:
    name = c.rng.choice(("Add", "Add", "Mul", "Mul", "Mul", "Sub", "Div", "Max", "Min"))
    sizes = c.along_one_axis(x)
    operand = c.tensor(x, *sizes, data=(lambda a: np.abs(a) + 0.5) if name == "Div" else None)
    if name != "Div" and c.b.chance(0.4):
        return c.node(name, operand, x)
    return c.node(name, x, operand)


@step()
def prelu(c: Chain, x: Value) -> Value:
    c.rank(x, 1, 2, 3, 4, 5)
    return c.node("PRelu", x, c.tensor(x, *c.along_one_axis(x)))


@step()
def clip(c: Chain, x: Value) -> Value:
    low, high = c.rng.choice(((0.0, 6.0), (-1.0, 1.0), (0.0, 1.0)))
    return c.node("Clip", x, c.scalar(x, low), c.scalar(x, high))


@step()
def power(c: Chain, x: Value) -> Value:
    return c.node("Pow", x, c.scalar(x, c.rng.choice((2.0, 1.0, 3.0))))


@step()
def where(c: Chain, x: Value) -> Value:
    condition = c.of_kind(TensorProto.BOOL, *c.along_one_axis(x))
    other = c.tensor(x, *c.along_one_axis(x))
    return c.node("Where", condition, *((x, other) if c.b.chance(0.5) else (other, x)))


@step(4)
def with_another(c: Chain, x: Value) -> Value:
    """The value beside itself or one that was there before."""
    others = [o for o in c.kept if o.kind == x.kind and o.dims == x.dims] or [x]
    other = c.rng.choice(others)
    name = c.rng.choice(("Add", "Add", "Mul", "Sub", "Max", "Concat", "MatMul"))
    operands = (other, x) if c.b.chance(0.5) else (x, other)
    if name == "Concat" and c.rank(x):
        return c.node(name, *operands, axis=c.rng.randrange(c.rank(x)))
    return c.node(name, *operands)


@step(4)
def matrix_product(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 2, 3, 4, 5)
    if c.b.chance(0.25):
        return c.node("MatMul", c.weight(x, c.b.dim()[0], c.fixed(x, -2)), x)
    inner, columns = c.fixed(x, -1), c.b.dim()[0]
    batch = [c.rng.choice((1, c.fixed(x, i))) for i in range(rank - 2)] if c.b.chance(0.2) else []
    return c.node("MatMul", x, c.weight(x, *batch, inner, columns))


@step()
def gemm(c: Chain, x: Value) -> Value:
    c.rank(x, 2)
    across, turned, columns = c.rng.randrange(2), c.rng.randrange(2), c.b.dim()[0]
    inner = c.fixed(x, 0 if across else 1)
    second = c.weight(x, *((columns, inner) if turned else (inner, columns)))
    bias = [c.tensor(x, *c.rng.choice(((columns,), (1, columns), (1,))))] if c.b.chance(0.6) else []
    return c.node("Gemm", x, second, *bias, transA=across, transB=turned, alpha=c.rng.choice((1.0, 0.5)))


@step(4)
def convolution(c: Chain, x: Value) -> Value:
    c.rank(x, 3, 4, 5)
    channels = c.fixed(x, 1)
    group = c.rng.choice((1, 1, channels))
    filters = channels if group > 1 else c.b.dim()[0]
    kernel = _window(c, x, (1, 1, 2, 3))
    inputs = [c.weight(x, filters, channels // group, *kernel)]
    if c.b.chance(0.5):
        inputs.append(c.tensor(x, filters))
    attributes = {"strides": [c.rng.choice((1, 2)) for _ in kernel]} if c.b.chance(0.3) else {}
    return c.node("Conv", x, *inputs, group=group, pads=_pads(c, kernel), **attributes)


@step()
def transposed_convolution(c: Chain, x: Value) -> Value:
    spatial = c.rank(x, 3, 4, 5) - 2
    channels = c.fixed(x, 1)
    group = c.rng.choice((1, 1, channels))
    kernel = [c.rng.choice((1, 2, 3)) for _ in range(spatial)]
    filters = 1 if group > 1 else c.b.dim()[0]
    inputs = [c.weight(x, channels, filters, *kernel)]
    if c.b.chance(0.4):
        inputs.append(c.tensor(x, filters * group))
    attributes = {"strides": [c.rng.choice((1, 2)) for _ in kernel]} if c.b.chance(0.5) else {}
    return c.node("ConvTranspose", x, *inputs, group=group, **attributes)


def _window(c: Chain, x: Value, lengths: tuple[int, ...]) -> list[int]:
    """The lengths of a window, none longer than the image."""
    return [min(c.rng.choice(lengths), *d) for d in c.dims(x)[2:]]


def _pads(c: Chain, kernel: list[int]) -> list[int]:
    """Padding as wide as keeps the size, or none."""
    if c.b.chance(0.3):
        return [0] * (2 * len(kernel))
    return [(k - 1) // 2 for k in kernel] + [k // 2 for k in kernel]


@step(2)
def pool(c: Chain, x: Value) -> Value:
    c.rank(x, 3, 4, 5)
    kernel = _window(c, x, (1, 2, 2, 3))
    attributes: dict[str, object] = {"strides": [c.rng.choice((1, 2)) for _ in kernel]} if c.b.chance(0.4) else {}
    name = c.rng.choice(("MaxPool", "AveragePool"))
    if name == "AveragePool":
        attributes["count_include_pad"] = c.rng.randrange(2)
    return c.node(name, x, kernel_shape=kernel, pads=_pads(c, kernel), **attributes)


@step()
def global_pool(c: Chain, x: Value) -> Value:
    c.rank(x, 3, 4, 5)
    return c.node(c.rng.choice(("GlobalAveragePool", "GlobalMaxPool")), x)


@step(3)
def reduction(c: Chain, x: Value) -> Value:
    rank = c.rank(x)
    if not rank:
        raise NoFitError("no axis")
    name = c.rng.choice(
        ("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare")
    )
    axes = c.rng.sample(range(rank), c.rng.randint(1, max(1, rank - 1)))
    return c.along(name, x, axes, keepdims=c.rng.randrange(2))


@step(2)
def normalization(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 2, 3, 4, 5)
    names = ["LayerNormalization", "LpNormalization"]
    names += ["BatchNormalization"] * 2 + (["InstanceNormalization"] if rank > 2 else [])
    name = c.rng.choice(names)
    if name == "LayerNormalization":
        axis = c.rng.randrange(1, rank)
        sizes = [c.fixed(x, i) for i in range(axis, rank)]
        return c.node(name, x, *(c.tensor(x, *sizes) for _ in range(c.rng.choice((1, 2)))), axis=axis)
    if name == "LpNormalization":
        return c.node(name, x, axis=c.rng.randrange(rank), p=c.rng.choice((1, 2)))
    channels = c.fixed(x, 1)
    given = [c.tensor(x, channels) for _ in range(2 if name == "InstanceNormalization" else 3)]
    if name == "BatchNormalization":
        given.append(c.tensor(x, channels, data=lambda a: np.abs(a) + 0.5))
    return c.node(name, x, *given)


@step(2)
def softmax(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 1, 2, 3, 4, 5)
    return c.node(c.rng.choice(("Softmax", "Softmax", "LogSoftmax")), x, axis=c.rng.choice((-1, c.rng.randrange(rank))))


@step(4)
def transpose(c: Chain, x: Value) -> Value:
    order = list(range(c.rank(x, 2, 3, 4, 5)))
    c.rng.shuffle(order)
    return c.node("Transpose", x, perm=order)


@step(4)
def reshape(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 1, 2, 3, 4, 5)
    how = c.rng.choice(("flatten", "merge", "split", "Unsqueeze", "Squeeze", "Flatten", "same"))
    if how == "Flatten":
        return c.node(how, x, axis=c.rng.randrange(rank + 1))
    if how == "Unsqueeze":
        return c.along(how, x, [c.rng.randrange(rank + 1)])
    if how == "Squeeze":
        ones = [i for i, d in enumerate(c.dims(x)) if d == (1, 1)]
        if not ones:
            raise NoFitError("nothing to squeeze")
        return c.along(how, x, [c.rng.choice(ones)])
    if how == "flatten":
        target = [0, -1] if rank > 1 else [-1]
    elif how == "merge" and rank > 2:
        at = c.rng.randrange(1, rank - 1)
        target = [0] * at + [-1] + [c.fixed(x, i) for i in range(at + 2, rank)]
    elif how == "split" and rank < 5:
        at = c.rng.randrange(rank)
        size = c.fixed(x, at)
        part = c.rng.choice([p for p in range(1, size + 1) if size % p == 0])
        target = [0] * at + c.rng.choice(([part, size // part], [size // part, part]))
        target += [c.fixed(x, i) for i in range(at + 1, rank)]
    else:
        target = [-1] + [c.fixed(x, i) for i in range(1, rank)]
    return c.node("Reshape", x, c.whole(target))


@step(2)
def part(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 1, 2, 3, 4, 5)
    axis = c.rng.randrange(rank)
    size = c.fixed(x, axis)
    name = c.rng.choice(("Slice", "Gather", "Gather", "Split"))
    if name == "Gather":
        picked = c.rng.choices(range(-size, size), k=c.rng.choice((1, size)))
        index = c.whole(picked) if c.b.chance(0.7) else c.whole(picked[0])
        return c.node("Gather", x, index, axis=axis)
    if name == "Split" and size % 2 == 0:
        names = {"num_outputs": 2} if c.b.opset >= 18 else {}
        return c.b.node("Split", [x], 2, axis=axis, **names)[c.rng.randrange(2)]
    begin, end, by = c.rng.choice(
        ((0, max(size - 1, 1), 1), (1 % size, 2**31 - 1, 1), (-1, -(2**31), -1), (0, size, 2))
    )
    return c.node("Slice", x, c.whole([begin]), c.whole([end]), c.whole([axis]), c.whole([by]))


@step()
def wider(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 1, 2, 3, 4, 5)
    axis = c.rng.randrange(rank)
    one = [int(i == axis) for i in range(rank)]
    name = c.rng.choice(("Pad", "Tile", "Expand"))
    if name == "Pad":
        mode = c.rng.choice(("constant", "edge"))
        return c.node(name, x, c.whole([*(c.rng.randrange(2) * i for i in one), *one]), mode=mode)
    if name == "Tile":
        return c.node(name, x, c.whole([1 + i for i in one]))
    target = [s if d == (1, 1) else 1 for s, d in zip([c.b.dim()[0]] * rank, c.dims(x), strict=True)]
    return c.node(name, x, c.whole([c.b.dim()[0], *target] if c.b.chance(0.3) and rank < 5 else target))


@step()
def resize(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 3, 4, 5)
    scales = np.array([1.0, 1.0, *(c.rng.choice((1.0, 2.0)) for _ in range(rank - 2))], np.float32)
    mode = c.rng.choice(("nearest", "linear"))
    return c.node("Resize", x, None, c.b.operand((scales, scales), constant=True), mode=mode)


@step()
def depth_or_space(c: Chain, x: Value) -> Value:
    c.rank(x, 4)
    if c.b.chance(0.5) and c.fixed(x, 1) % 4 == 0:
        return c.node("DepthToSpace", x, blocksize=2, mode=c.rng.choice(("DCR", "CRD")))
    if c.fixed(x, 2) % 2 or c.fixed(x, 3) % 2:
        raise NoFitError("odd")
    return c.node("SpaceToDepth", x, blocksize=2)


@step()
def running_sum(c: Chain, x: Value) -> Value:
    axis = c.whole(c.rng.randrange(c.rank(x, 1, 2, 3, 4, 5)))
    return c.node("CumSum", x, axis, exclusive=c.rng.randrange(2))


@step()
def best(c: Chain, x: Value) -> Value:
    axis = c.rng.randrange(c.rank(x, 1, 2, 3, 4, 5))
    if c.b.chance(0.5):
        return c.b.node("TopK", [x, c.whole([max(1, c.fixed(x, axis) - 1)])], 2, axis=axis)[0]
    index = c.node("ArgMax", x, axis=axis, keepdims=c.rng.randrange(2))
    return c.node("Cast", index, to=x.kind)


@step()
def to_half_and_back(c: Chain, x: Value) -> Value:
    other = TensorProto.FLOAT16 if x.kind == TensorProto.FLOAT else TensorProto.FLOAT
    half = c.node("Cast", x, to=other)
    if c.b.chance(0.5):
        half = c.node("Mul", half, c.tensor(half, *c.along_one_axis(half)))
    return c.node("Cast", half, to=x.kind) if c.b.chance(0.8) else half
