# SPDX-License-Identifier: Apache-2.0
"""The steps of a chain that are several nodes: what exporters write, and engines recognize and fuse."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs.builder import NoFitError, Value
from backend_test.search.graphs.chains.chain import Chain
from backend_test.search.graphs.chains.steps import step

_MATRIX, _IMAGE = 2, 4


@step()
def gelu(c: Chain, x: Value) -> Value:
    inner = c.node("Add", c.node("Erf", c.node("Div", x, c.scalar(x, 2**0.5))), c.scalar(x, 1.0))
    if c.b.chance(0.5):
        return c.node("Mul", c.node("Mul", x, inner), c.scalar(x, 0.5))
    return c.node("Mul", c.node("Mul", x, c.scalar(x, 0.5)), inner)


@step()
def gated(c: Chain, x: Value) -> Value:
    """Swish, HardSwish and their like: a value times a gate of itself."""
    how = c.rng.choice(("Sigmoid", "HardSigmoid", "Tanh", "relu6", "Softplus"))
    if how == "relu6":
        shifted = c.node("Clip", c.node("Add", x, c.scalar(x, 3.0)), c.scalar(x, 0.0), c.scalar(x, 6.0))
        return c.node("Div", c.node("Mul", x, shifted), c.scalar(x, 6.0))
    gate = c.node(how, x)
    return c.node("Mul", *((x, gate) if c.b.chance(0.5) else (gate, x)))


@step(2)
def written_out_normalization(c: Chain, x: Value) -> Value:
    """LayerNormalization, InstanceNormalization or RMSNormalization of single operators."""
    rank = c.rank(x, 2, 3, 4)
    axes = c.rng.choice(([rank - 1], [-1], [1], list(range(1, rank)), list(range(2, rank)) or [1]))
    centred = x
    if c.b.chance(0.6):
        centred = c.node("Sub", x, c.along("ReduceMean", x, axes, keepdims=1))
    square = c.node("Pow", centred, c.scalar(x, 2.0)) if c.b.chance(0.5) else c.node("Mul", centred, centred)
    spread = c.along("ReduceMean", square, axes, keepdims=1)
    root = c.node("Sqrt", c.node("Add", spread, c.scalar(x, 1e-3)))
    one_over = c.b.chance(0.3)
    normal = c.node("Mul", centred, c.node("Reciprocal", root)) if one_over else c.node("Div", centred, root)
    if c.b.chance(0.7):
        normal = c.node("Mul", normal, c.tensor(x, *c.along_one_axis(x)))
        normal = c.node("Add", normal, c.tensor(x, *c.along_one_axis(x)))
    return normal


@step()
def unit_length(c: Chain, x: Value) -> Value:
    axis = c.rng.randrange(c.rank(x, 2, 3, 4))
    length = c.along("ReduceL2", x, [axis], keepdims=1)
    return c.node("Div", x, c.node("Clip", length, c.scalar(x, 1e-3)) if c.b.chance(0.7) else length)


@step(2)
def attention(c: Chain, x: Value) -> Value:
    """softmax(q kT) v, with projections or without."""
    rank = c.rank(x, 2, 3, 4)
    width = c.fixed(x, -1)
    queries, keys, values = (c.node("MatMul", x, c.weight(x, width, width)) if c.b.chance(0.5) else x for _ in range(3))
    order = [*range(rank - 2), rank - 1, rank - 2]
    scores = c.node("MatMul", queries, c.node("Transpose", keys, perm=order))
    if c.b.chance(0.6):
        scores = c.node(c.rng.choice(("Mul", "Div")), scores, c.scalar(x, 0.5))
    if c.b.chance(0.4):
        scores = c.node("Add", scores, c.tensor(x, *c.along_one_axis(scores)))
    return c.node("MatMul", c.node("Softmax", scores, axis=-1), values)


@step(2)
def squeeze_and_excite(c: Chain, x: Value) -> Value:
    rank, channels = c.rank(x, 3, 4), c.fixed(x, 1)
    if c.b.chance(0.5):
        pooled = c.node("GlobalAveragePool", x)
    else:
        pooled = c.along("ReduceMean", x, list(range(2, rank)), keepdims=1)
    gate = c.node("Conv", pooled, c.weight(x, channels, channels, *(1,) * (rank - 2)))
    return c.node("Mul", *((x, c.node("Sigmoid", gate)) if c.b.chance(0.5) else (c.node("HardSigmoid", gate), x)))


@step()
def shuffled_channels(c: Chain, x: Value) -> Value:
    rank = c.rank(x, 3, 4)
    sizes = [c.fixed(x, i) for i in range(1, rank)]
    if sizes[0] % 2:
        raise NoFitError("odd")
    split = c.node("Reshape", x, c.whole([-1, 2, sizes[0] // 2, *sizes[1:]]))
    turned = c.node("Transpose", split, perm=[0, 2, 1, *range(3, rank + 1)])
    return c.node("Reshape", turned, c.whole([-1, *sizes]))


@step(2)
def reshaped_as_it_was(c: Chain, x: Value) -> Value:
    """A shape that the graph makes of the value's own."""
    rank = c.rank(x, 2, 3, 4)
    shape = c.node("Shape", x)
    at = [c.along("Unsqueeze", c.node("Gather", shape, c.whole(i)), [0]) for i in range(rank)]
    if c.b.chance(0.5):
        target = c.node("Concat", at[0], c.whole([-1]), axis=0)
    else:
        order = list(range(rank))
        c.rng.shuffle(order)
        target = c.node("Concat", *(at[i] for i in order), axis=0)
    return c.node("Reshape", x, target)


@step(5)
def quantized(c: Chain, x: Value) -> Value:
    """QuantizeLinear and DequantizeLinear, with a scale for all or for each element of an axis."""
    if x.kind != TensorProto.FLOAT:
        raise NoFitError("quantized from float32")
    rank = c.rank(x)
    each = rank and c.b.chance(0.25)
    axis = c.rng.randrange(rank) if each else 0
    sizes = (c.fixed(x, axis),) if each else c.rng.choice(((), (), (), (1,)))
    kind = c.rng.choice((TensorProto.UINT8, TensorProto.INT8))
    scale = c.b.operand((_scale(c, sizes),) * 2, constant=True)
    given = [scale]
    read = given
    if kind == TensorProto.UINT8 or c.b.chance(0.7):
        zero = np.full(sizes, c.rng.choice((0, 3)) if kind == TensorProto.INT8 else 128)
        zero = zero.astype(np.int8 if kind == TensorProto.INT8 else np.uint8)
        given = [scale, c.b.operand((zero, zero), constant=True)]
        read = given if zero.any() or c.b.chance(0.7) else read
    along = {"axis": axis} if each else {}
    held = c.node("QuantizeLinear", x, *given, **along)
    if rank > 1 and c.b.chance(0.2) and not each:
        order = list(range(rank))
        c.rng.shuffle(order)
        held = c.node("Transpose", held, perm=order)
    return c.node("DequantizeLinear", held, *read, **along)


@step(2)
def quantized_layer(c: Chain, x: Value) -> Value:
    """A product or convolution of what is quantized, with a bias of int32 whose scale fits or not."""
    held = quantized(c, x)
    rank = c.rank(x, 2, 3, 4)
    made = c.b.dim()[0]
    if rank == _IMAGE:
        window = c.rng.choice((1, 1, min(3, c.fixed(x, 2), c.fixed(x, 3))))
        operator, weight = "Conv", c.dequantized(made, c.fixed(x, 1), window, window)
    else:
        operator = c.rng.choice(("Gemm", "MatMul")) if rank == _MATRIX else "MatMul"
        weight = c.dequantized(c.fixed(x, -1), made)
    bias = c.node(
        "DequantizeLinear",
        c.of_kind(TensorProto.INT32, made, data=lambda a: a % 4000, share=1.0),
        c.b.operand((np.float32(c.rng.choice((0.0006, 0.001))),) * 2, constant=True),
    )
    how = c.rng.choice(("none", "inside", "behind"))
    if how == "inside" and operator != "MatMul":
        factor = {"alpha": 0.5} if operator == "Gemm" and c.b.chance(0.2) else {}
        return c.node(operator, held, weight, bias, **factor)
    result = c.node(operator, held, weight)
    return result if how == "none" or operator == "Conv" else c.node("Add", result, bias)


def _scale(c: Chain, sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(c.rng.choices((0.02, 0.03, 0.05, 0.015625), k=int(np.prod(sizes))), np.float32).reshape(sizes)


@step()
def recurrent(c: Chain, x: Value) -> Value:
    c.rank(x, 3)
    name = c.rng.choice(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    size, width = c.b.dim()[0], c.fixed(x, 2)
    direction = c.rng.choice(("forward", "forward", "reverse", "bidirectional"))
    count = 2 if direction == "bidirectional" else 1
    inputs = [c.tensor(x, count, gates * size, width), c.tensor(x, count, gates * size, size)]
    if c.b.chance(0.5):
        inputs.append(c.tensor(x, count, 2 * gates * size))
    y = c.node(name, x, *inputs, outputs=2, hidden_size=size, direction=direction)
    if count == 1 and c.b.chance(0.6):
        return c.along("Squeeze", y, [1])
    return y
