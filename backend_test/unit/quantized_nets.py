# SPDX-License-Identifier: Apache-2.0
"""Random nets with Q/DQ nodes, as quantizers write them: ranges are those of the float net's tensors.

Weights have 7 bits, so that the sums of two products saturate on no processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from backend_test.unit import models

OPSET = 18

#: A tensor's name and shape.
Value = tuple[str, tuple[int, ...]]


class Net:
    """A net while it grows.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.weights = str(self.random.choice(["int8", "int8 by channel", "uint8"]))
        self.nodes: list[NodeProto] = []
        self.initializers: dict[str, np.ndarray] = {}
        channels, size = int(self.random.choice([4, 8])), int(self.random.choice([6, 8]))
        self.values: list[Value] = [("x", (1, channels, size, size))]

    def constant(self, value: Any) -> str:
        """A constant; its name."""
        name = f"c{len(self.initializers)}"
        self.initializers[name] = np.asarray(value)
        return name

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node of one output; its name."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def quantized(self, read: str, scale: float, zero: np.generic) -> str:
        """A value through a Q/DQ pair."""
        pair = (self.constant(np.float32(scale)), self.constant(zero))
        return self("DequantizeLinear", self("QuantizeLinear", read, *pair), *pair)

    def weight(self, shape: tuple[int, ...], axis: int = 0) -> str:
        """A weight of 7 bits through a DequantizeLinear."""
        values = self.random.integers(-63, 64, shape)
        if self.weights == "uint8":
            whole = self.constant((values + 128).astype(np.uint8))
            return self("DequantizeLinear", whole, self.constant(np.float32(0.01)), self.constant(np.uint8(128)))
        whole = self.constant(values.astype(np.int8))
        if self.weights == "int8":
            return self("DequantizeLinear", whole, self.constant(np.float32(0.01)), self.constant(np.int8(0)))
        scales = self.constant((self.random.random(shape[axis]) * 0.01 + 0.004).astype(np.float32))
        return self("DequantizeLinear", whole, scales, self.constant(np.zeros(shape[axis], np.int8)), axis=axis)

    def like(self, shape: tuple[int, ...]) -> str:
        """Any value of a shape."""
        same = [name for name, other in self.values if other == shape]
        return str(self.random.choice(same))

    def grow(self) -> None:
        """Add a layer, where the drawn one fits."""
        name, shape = (
            self.values[-1] if self.random.random() < 0.75 else self.values[self.random.integers(len(self.values))]
        )
        made = LAYERS[int(self.random.integers(len(LAYERS)))](self, name, shape)
        if made is not None:
            self.values.append(made)


def _conv(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    (n, c, h, w), pad, size = shape, int(net.random.integers(2)), int(net.random.choice([1, 3]))
    group = int(net.random.choice([g for g in (1, 2, c) if c % g == 0]))
    out = c if group == c else int(net.random.choice([4, 8]))
    if min(h, w) + 2 * pad < size:
        return None
    bias = [net.constant(net.random.normal(size=out).astype(np.float32))] if net.random.random() < 0.5 else []
    made = net("Conv", x, net.weight((out, c // group, size, size)), *bias, group=group, pads=[pad] * 4)
    return made, (n, out, h + 2 * pad - size + 1, w + 2 * pad - size + 1)


def _conv_transpose(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    n, c, h, w = shape
    return (
        (net("ConvTranspose", x, net.weight((c, 4, 2, 2), 1), strides=[2, 2]), (n, 4, 2 * h, 2 * w)) if h <= 8 else None
    )


def _mat_mul(net: Net, x: str, shape: tuple[int, ...]) -> Value:
    return net("MatMul", x, net.weight((shape[-1], 6), 1)), (*shape[:-1], 6)


def _binary(net: Net, x: str, shape: tuple[int, ...]) -> Value:
    factors = net.constant((net.random.random((1, shape[1], 1, 1)) + 0.5).astype(np.float32))
    other = str(net.random.choice([factors, net.like(shape), net("GlobalAveragePool", x)]))
    return net(str(net.random.choice(["Add", "Mul", "Max", "Min", "Sub"])), x, other), shape


def _pool(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    if min(shape[2:]) < 3:
        return None
    if net.random.random() < 0.4:
        return net("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4), shape
    counted = int(net.random.integers(2))
    return net("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=counted), shape


def _concat(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    others = [(name, s) for name, s in net.values if s[2:] == shape[2:]]
    other, size = others[int(net.random.integers(len(others)))]
    channels = shape[1] + size[1]
    return (net("Concat", x, other, axis=1), (1, channels, *shape[2:])) if channels <= 32 else None


def _split(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    if shape[1] % 2:
        return None
    names = [f"v{len(net.nodes)}", f"v{len(net.nodes)}b"]
    net.nodes.append(helper.make_node("Split", [x], names, axis=1, num_outputs=2))
    half = (1, shape[1] // 2, *shape[2:])
    net.values.append((names[0], half))
    return names[1], half


def _resize(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    mode = str(net.random.choice(["nearest", "linear"]))
    scales = net.constant(np.float32([1, 1, 2, 2]))
    n, c, h, w = shape
    return (net("Resize", x, "", scales, mode=mode), (n, c, 2 * h, 2 * w)) if h <= 8 else None


def _moved(net: Net, x: str, shape: tuple[int, ...]) -> Value | None:
    n, c, h, w = shape
    match int(net.random.integers(5)):
        case 0:
            return net("Transpose", x, perm=[0, 1, 3, 2]), (n, c, w, h)
        case 1:
            return net("Reshape", x, net.constant(np.array([n, c, w, h]))), (n, c, w, h)
        case 2 if h > 4:
            bounds = (net.constant(np.array([at])) for at in (1, h - 1, 2))
            return net("Slice", x, *bounds), (n, c, h - 2, w)
        case 3:
            return net("Gather", x, net.constant(net.random.integers(0, c, c)), axis=1), shape
        case 4:
            value = net.constant(np.float32(net.random.choice([0, 0.5])))
            return net("Pad", x, net.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1])), value), (n, c, h + 2, w + 2)
    return None


def _activation(net: Net, x: str, shape: tuple[int, ...]) -> Value:
    match int(net.random.integers(6)):
        case 0:
            return net("Relu", x), shape
        case 1:
            return net("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(1.5))), shape
        case 2:
            return net("Mul", x, net("HardSigmoid", x, alpha=1 / 6)), shape
        case 3:
            slopes = (net.random.random((shape[1], 1, 1)) * 0.3).astype(np.float32)
            return net("PRelu", x, net.constant(slopes)), shape
        case 4:
            return net("Mul", x, net("Sigmoid", net("GlobalAveragePool", x))), shape
    return net("Add", x, net("ReduceMax", x, net.constant(np.array([2, 3])))), shape


LAYERS: tuple[Callable[[Net, str, tuple[int, ...]], Value | None], ...] = (
    *(_conv, _conv, _conv, _conv_transpose, _mat_mul, _binary, _binary, _pool, _concat, _concat),
    *(_split, _resize, _moved, _moved, _activation, _activation),
)


def quantized_net(
    seed: int, run: Callable[[ModelProto, dict[str, np.ndarray]], list[np.ndarray]]
) -> tuple[ModelProto, np.ndarray]:
    """A net with Q/DQ pairs behind some of its tensors, and an input.

    Parameters
    ----------
    seed : int
    run : callable
        Runs a model literally: the float net's tensors give the ranges.
    """
    net = Net(seed)
    for _ in range(int(net.random.integers(2, 7))):
        net.grow()
    x = net.random.normal(size=net.values[0][1]).astype(np.float32)
    names = [name for name, _ in net.values[1:]] or [net("Identity", "x")]
    given = [models.tensor("x", list(x.shape))]
    plain = models.model(
        net.nodes, given, [models.tensor(n, None) for n in names], initializers=net.initializers, opsets={"": OPSET}
    )
    found = {"x": x, **dict(zip(names, run(plain, {"x": x}), strict=True))}
    grown, net.nodes = net.nodes, []
    share = float(net.random.choice([0.5, 0.8, 1.0]))
    signed, symmetric = (bool(net.random.integers(2)) for _ in range(2))
    pairs: dict[str, str] = {}

    def pair(name: str) -> None:
        low, high = min(float(found[name].min()), 0.0), max(float(found[name].max()), 0.0)
        if net.random.random() > share or high - low < 1e-6 or (name == names[-1] and net.random.random() < 0.4):
            return
        scale, zero = (
            (max(-low, high) / 127, 128) if symmetric else ((high - low) / 255, round(-low * 255 / (high - low)))
        )
        quantized = net.quantized(name, scale, np.int8(zero - 128) if signed else np.uint8(zero))
        pairs[name] = quantized

    nodes: list[NodeProto] = []
    for made in (None, *grown):
        for name in ["x"] if made is None else made.output:
            if made is not None and name == made.output[0]:
                for i, read in enumerate(made.input):
                    made.input[i] = pairs.get(read, read)
                nodes.append(made)
            if name in found:
                net.nodes = [*grown, *nodes]  # so that names stay unique
                start = len(net.nodes)
                pair(name)
                nodes += net.nodes[start:]
    last = pairs.get(names[-1], names[-1])
    model = models.model(nodes, given, [models.tensor(last, None)], initializers=net.initializers, opsets={"": OPSET})
    return model, x
