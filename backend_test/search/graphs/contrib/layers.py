# SPDX-License-Identifier: Apache-2.0
"""Activations, normalizations, products and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend_test.search.graphs.contrib.draft import Draft

_PARAMETERS = {"LeakyRelu": [0.3], "Clip": [-0.5, 0.7], "HardSigmoid": [0.3, 0.4]}
_ROWS: list[int | str] = ["batch", "length", 8]


def _activation(draft: Draft) -> None:
    operator = draft.rng.choice(("BiasGelu", "FastGelu", "Gelu", "QuickGelu"))
    draft.given(_ROWS)
    if operator == "BiasGelu" or (operator == "FastGelu" and draft.chance(0.6)):
        draft.held(draft.floats(8))
    alpha: dict[str, Any] = (
        {"alpha": draft.rng.choice((1.702, 1.0, 0.5))} if operator == "QuickGelu" and draft.chance(0.7) else {}
    )
    draft.node(operator, **alpha)


def _normalization(draft: Draft) -> None:
    operator = draft.rng.choice(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"))
    draft.given(_ROWS)
    draft.given(_ROWS)
    draft.held(draft.floats(8))
    if operator == "SkipLayerNormalization":
        if draft.chance(0.7):
            draft.held(draft.floats(8))
        else:
            draft.leave_out()
    if draft.chance(0.5):
        draft.held(draft.floats(8))
    outputs = draft.rng.choice((["y"], ["y", "", "", "sum"]))
    draft.node(operator, outputs, epsilon=draft.rng.choice((1e-5, 0.1)))


def _simplified(draft: Draft) -> None:
    draft.given(_ROWS)
    draft.held(draft.floats(8))
    epsilon = draft.rng.choice((1e-5, 0.1))
    draft.node("SimplifiedLayerNormalization", domain="", axis=-1, epsilon=epsilon, stash_type=1)


def _product(draft: Draft) -> None:
    turned = [draft.rng.choice((0, 1)) for _ in range(2)]
    draft.given(["batch", 4, "length"] if turned[0] else ["batch", "length", 4])
    draft.held(draft.floats(*((5, 4) if turned[1] else (4, 5))))
    draft.node("FusedMatMul", transA=turned[0], transB=turned[1], alpha=draft.rng.choice((1.0, 0.5, -2.0)))


def _gemm(draft: Draft) -> None:
    draft.dtype = np.dtype(np.float32)
    turned = [draft.rng.choice((0, 1)) for _ in range(2)]
    activation = draft.rng.choice(("Relu", "Tanh", "Sigmoid", "LeakyRelu"))
    draft.given([4, "length"] if turned[0] else ["length", 4])
    draft.held(draft.floats(*((5, 4) if turned[1] else (4, 5))))
    draft.held(draft.rng.choice((draft.floats(5), draft.floats(1, 5), draft.floats(1))))
    slope: dict[str, Any] = {"activation_alpha": 0.3} if activation == "LeakyRelu" else {}
    scales: dict[str, Any] = {"alpha": draft.rng.choice((1.0, 0.5)), "beta": draft.rng.choice((1.0, 0.5))}
    draft.node("FusedGemm", transA=turned[0], transB=turned[1], activation=activation, **scales, **slope)


def _convolution(draft: Draft) -> None:
    draft.dtype = np.dtype(np.float32)
    activation = draft.rng.choice(("Relu", "Tanh", "Sigmoid", *_PARAMETERS))
    group = draft.rng.choice((1, 1, 2))
    draft.given(["batch", 4, 6, 6])
    draft.held(draft.floats(4, 4 // group, 3, 3), 1)
    if draft.chance(0.6):
        draft.held(draft.floats(4))
        if draft.chance(0.4):
            draft.given(["batch", 4, 6, 6])
    given: dict[str, Any] = {"activation_params": _PARAMETERS[activation]} if activation in _PARAMETERS else {}
    draft.node("FusedConv", activation=activation, group=group, kernel_shape=[3, 3], pads=[1] * 4, **given)


def _quantized_product(draft: Draft) -> None:
    draft.dtype = np.dtype(np.float32)
    draft.given(["batch", "length", 8])
    draft.held(draft.integers(0, 255, (8, 5), np.uint8), 1)
    draft.held(abs(draft.rng.choice((draft.floats(), draft.floats(5)))) + np.float32(0.1), 1)
    if draft.chance(0.5):
        draft.held(draft.integers(0, 255, (), np.uint8), 1)
    else:
        draft.leave_out()
    if draft.chance(0.5):
        draft.held(draft.floats(5))
    draft.node("DynamicQuantizeMatMul")


def _product_of_few_bits(draft: Draft) -> None:
    draft.dtype = np.dtype(np.float32)
    depth, columns, block = draft.rng.choice((32, 48, 64)), draft.rng.choice((4, 8)), draft.rng.choice((16, 32))
    blocks = -(-depth // block)
    draft.given(["batch", "length", depth])
    draft.held(draft.integers(0, 256, (columns, blocks, block // 2), np.uint8), 1)
    draft.held(abs(draft.floats(columns * blocks)) * np.float32(0.1) + np.float32(0.01), 1)
    if draft.chance(0.5):
        draft.held(draft.integers(0, 256, (columns * ((blocks + 1) // 2),), np.uint8), 1)
    draft.node("MatMulNBits", K=depth, N=columns, bits=4, block_size=block)


def _pad(draft: Draft) -> None:
    draft.given(["length", 3])
    draft.held(np.array([1, 0, 0, 2]))
    if draft.chance(0.7):
        draft.held(draft.floats(), 0.5)
    draft.node("Pad", mode="constant")


MAKERS = (
    *(_activation, _normalization, _simplified, _product, _gemm),
    *(_convolution, _quantized_product, _product_of_few_bits, _pad),
)
