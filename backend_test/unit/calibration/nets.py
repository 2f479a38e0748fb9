# SPDX-License-Identifier: Apache-2.0
"""Small float models to quantize, and data for them."""

from __future__ import annotations

from collections.abc import Iterator

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


def images(count: int = 10, size: int = 24, seed: int = 1) -> Iterator[np.ndarray]:
    """Smooth pictures, one a batch."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        coarse = rng.normal(size=(1, 3, size // 4, size // 4))
        yield np.repeat(np.repeat(coarse, 4, axis=2), 4, axis=3).astype(np.float32)
