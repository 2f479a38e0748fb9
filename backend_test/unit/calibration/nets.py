# SPDX-License-Identifier: Apache-2.0
"""Small float models to quantize, and data for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from backend_test.unit import models


def convolutional(channels: int = 32, layers: int = 4, opset: int = models.OPSET) -> onnx.ModelProto:
    """Convolutions of 3 by 3 with Relu between, a mean over the image and a linear layer."""
    rng = np.random.default_rng(0)
    nodes, weights, last, width = [], {}, "x", 3
    for i in range(layers):
        weights[f"w{i}"] = (rng.normal(size=(channels, width, 3, 3)) / np.sqrt(9 * width)).astype(np.float32)
        weights[f"b{i}"] = rng.normal(size=channels).astype(np.float32) / 10
        nodes.append(models.node("Conv", [last, f"w{i}", f"b{i}"], [f"c{i}"], pads=[1, 1, 1, 1], name=f"conv{i}"))
        nodes.append(models.node("Relu", [f"c{i}"], [f"r{i}"], name=f"relu{i}"))
        last, width = f"r{i}", channels
    weights["w"] = (rng.normal(size=(channels, 10)) / np.sqrt(channels)).astype(np.float32)
    nodes += [
        models.node("GlobalAveragePool", [last], ["mean"]),
        models.node("Flatten", ["mean"], ["flat"]),
        models.node("MatMul", ["flat", "w"], ["y"], name="head"),
    ]
    return models.model(
        nodes,
        [models.tensor("x", ["N", 3, "H", "W"])],
        [models.tensor("y", ["N", 10])],
        initializers=weights,
        opsets={"": opset},
    )


def transformer(width: int = 64, blocks: int = 2) -> onnx.ModelProto:
    """Blocks of attention and two linear layers with Gelu between, normalized after each, and a linear layer."""
    rng = np.random.default_rng(0)
    nodes, weights, last = [], {"half": np.float32(0.5), "one": np.float32(1), "root": np.float32(np.sqrt(2))}, "x"

    def linear(name: str, given: str, rows: int, columns: int) -> str:
        weights[f"{name}_w"] = (rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32)
        nodes.append(models.node("MatMul", [given, f"{name}_w"], [f"{name}_y"], name=name))
        return f"{name}_y"

    def step(op_type: str, inputs: list[str], name: str, **attributes: Any) -> str:
        nodes.append(models.node(op_type, inputs, [name], name=name, **attributes))
        return name

    def normalized(a: str, b: str, name: str) -> str:
        weights[f"{name}_gamma"] = np.ones(width, np.float32)
        return step("LayerNormalization", [step("Add", [a, b], f"{name}_sum"), f"{name}_gamma"], name)

    for i in range(blocks):
        query, key, value = (linear(f"{name}{i}", last, width, width) for name in ("query", "key", "value"))
        scores = step("MatMul", [query, step("Transpose", [key], f"turned{i}", perm=[0, 2, 1])], f"scores{i}")
        scores = step("Mul", [scores, "scale"], f"scaled{i}")
        attended = step("MatMul", [step("Softmax", [scores], f"softmax{i}"), value], f"attended{i}")
        last = normalized(last, linear(f"out{i}", attended, width, width), f"norm{i}")
        wide = linear(f"widen{i}", last, width, 4 * width)
        erf = step("Erf", [step("Div", [wide, "root"], f"divided{i}")], f"erf{i}")
        gelu = step(
            "Mul", [step("Mul", [wide, "half"], f"halved{i}"), step("Add", [erf, "one"], f"raised{i}")], f"gelu{i}"
        )
        last = normalized(last, linear(f"narrow{i}", gelu, 4 * width, width), f"normal{i}")
    weights["scale"] = np.float32(1 / np.sqrt(width))
    nodes.append(models.node("Identity", [linear("head", last, width, 10)], ["y"]))
    shape = ["N", "L", width]
    return models.model(nodes, [models.tensor("x", shape)], [models.tensor("y", ["N", "L", 10])], initializers=weights)


def sequences(count: int = 10, width: int = 64, seed: int = 1) -> Iterator[np.ndarray]:
    """Noise, one sequence a batch."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield rng.normal(size=(1, 32, width)).astype(np.float32)


def images(count: int = 10, size: int = 24, seed: int = 1) -> Iterator[np.ndarray]:
    """Smooth pictures, one a batch."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        coarse = rng.normal(size=(1, 3, size // 4, size // 4))
        yield np.repeat(np.repeat(coarse, 4, axis=2), 4, axis=3).astype(np.float32)
