# SPDX-License-Identifier: Apache-2.0
"""Quantized layers, as ONNX Runtime's quantizer writes them in operators of its own domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend_test.search.graphs.contrib.draft import Draft

_IMAGES: list[int | str] = ["batch", 4, 6, 6]
_BYTES = (np.dtype(np.uint8), np.dtype(np.int8))


def _type(draft: Draft) -> np.dtype[Any]:
    """That of the result too."""
    draft.dtype = draft.rng.choice(_BYTES)
    return draft.dtype


def _whole(draft: Draft, sizes: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(draft.dtype)
    return draft.integers(limits.min, limits.max + 1, sizes, draft.dtype)


#: Of operands, and of results: no ratio of them puts what is computed half-way between two integers, where kernels differ.
_SCALES, _RESULTS = (0.0213, 0.0977, 0.531, 1.07), (0.0191, 0.113, 0.471)


def _scale(draft: Draft, among: tuple[float, ...] = _SCALES) -> None:
    draft.held(np.array(draft.rng.choice(among), np.float32), 0.95)


def _zero(draft: Draft, share: float = 1.0) -> None:
    """A zero point; few operators can be without, whatever their schemas say (ONNX Runtime 1.24 to 1.32)."""
    if draft.chance(share):
        draft.held(_whole(draft, ()), 0.95)
    else:
        draft.leave_out()


def _quantized(draft: Draft, sizes: list[int | str], share: float = 1.0) -> None:
    draft.given(sizes, lambda shape: _whole(draft, shape))
    _scale(draft)
    _zero(draft, share)


def _into(draft: Draft, share: float = 1.0) -> None:
    """The scale and the zero point of the result."""
    _scale(draft, _RESULTS)
    _zero(draft, share)


def _arithmetic(draft: Draft) -> None:
    _type(draft)
    _quantized(draft, ["batch", "length", 8])
    other: list[int | str] = draft.rng.choice((["batch", "length", 8], [8], ["length", 1], [1, 1, 8], [2, 1, 1, 8]))
    if draft.chance(0.5) and not any(isinstance(size, str) for size in other):
        draft.held(_whole(draft, tuple(size for size in other if isinstance(size, int))), 1)
        _scale(draft)
        _zero(draft)
    else:
        _quantized(draft, other)
    _into(draft)
    draft.node(draft.rng.choice(("QLinearAdd", "QLinearMul")))


def _activation(draft: Draft) -> None:
    _type(draft)
    operator = draft.rng.choice(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"))
    zeros = 1.0 if operator == "QLinearSoftmax" else 0.7
    _quantized(draft, ["batch", "length", 8], zeros)
    if operator == "QLinearSoftmax":
        draft.held(np.array(1 / 256, np.float32), 1)
        draft.held(np.array(np.iinfo(draft.dtype).min, draft.dtype), 1)
        draft.node(operator, axis=draft.rng.choice((1, 2, -1)), opset=draft.rng.choice((11, 13)))
        return
    _into(draft, zeros)
    slope: dict[str, Any] = {"alpha": draft.rng.choice((0.01, 0.3, -0.5))} if operator == "QLinearLeakyRelu" else {}
    draft.node(operator, **slope)


def _pool(draft: Draft) -> None:
    _type(draft)
    last = draft.rng.choice((0, 0, 1))
    _quantized(draft, ["batch", 6, 6, 4] if last else _IMAGES)
    _into(draft)
    if draft.chance(0.4):
        draft.node("QLinearGlobalAveragePool", channels_last=last)
        return
    strides, pads = draft.rng.choice(([1, 1], [2, 2], [2, 1])), draft.rng.choice(([0] * 4, [1] * 4, [1, 0, 0, 1]))
    given = {"ceil_mode": draft.rng.choice((0, 1)), "count_include_pad": draft.rng.choice((0, 1))}
    draft.node("QLinearAveragePool", kernel_shape=[2, 3], strides=strides, pads=pads, channels_last=last, **given)


def _concat(draft: Draft) -> None:
    _type(draft)
    _scale(draft, _RESULTS)
    draft.held(_whole(draft, ()), 1)
    for _ in range(draft.rng.choice((1, 2, 3))):
        draft.given(["batch", "length", 8], lambda shape: _whole(draft, shape))
        _scale(draft)
        draft.held(_whole(draft, ()), 0.95)
    draft.node("QLinearConcat", axis=draft.rng.choice((0, 1, 2, -1)))


def _gemm(draft: Draft) -> None:
    kind, turned, by_column = _type(draft), draft.rng.choice((0, 1)), draft.chance(0.3)
    _quantized(draft, ["length", 4])
    draft.held(_whole(draft, (5, 4) if turned else (4, 5)), 1)
    scales = abs(draft.integers(1, 9, (5,)) / np.float32(40)).astype(np.float32) if by_column else np.float32(0.05)
    draft.held(np.asarray(scales), 1)
    draft.held(_whole(draft, (5,) if by_column else ()), 1)
    if draft.chance(0.5):
        draft.held(draft.integers(-500, 500, (5,), np.int32), 1)
    else:
        draft.leave_out()
    if draft.chance(0.7):
        _scale(draft, _RESULTS)
        draft.held(_whole(draft, ()), 1)
    else:
        draft.dtype = np.dtype(np.float32)
    draft.node("QGemm", transB=turned, alpha=draft.rng.choice((1.0, 1.0, 0.5)))
    draft.dtype = kind


def _product(draft: Draft) -> None:
    draft.dtype = np.dtype(np.uint8)
    by_column = draft.chance(0.4)
    draft.given(["batch", "length", 8], lambda shape: _whole(draft, shape))
    draft.held(_whole(draft, (8, 5)), 0.9)
    _scale(draft)
    draft.held(np.full((5,) if by_column else (), 0.03, np.float32), 1)
    _zero(draft, 0.7)
    if draft.chance(0.5):
        draft.held(_whole(draft, (5,) if by_column else ()), 1)
    else:
        draft.leave_out()
    draft.dtype = np.dtype(np.float32)
    if draft.chance(0.5):
        draft.held(draft.floats(5))
    draft.node("MatMulIntegerToFloat")


def _quantize(draft: Draft) -> None:
    draft.dtype = np.dtype(draft.rng.choice(("uint8", "int8", "uint16", "int16")))
    kind, axis = draft.dtype, draft.rng.choice((None, None, 1, 2, -1))
    count = () if axis is None else (4,) if axis == 1 else (8,)
    scales = np.asarray(draft.integers(1, 20, count) / np.float32(50), np.float32)
    into = draft.chance(0.5)
    zeros = _whole(draft, count)
    if into:
        draft.dtype = np.dtype(np.float32)
        draft.given(["batch", 4, 8])
    else:
        draft.given(["batch", 4, 8], lambda shape: _whole(draft, shape))
    draft.held(scales, 0.9)
    draft.held(zeros, 0.9)
    draft.dtype = kind if into else np.dtype(np.float32)
    along: dict[str, Any] = {} if axis is None else {"axis": axis}
    draft.node("QuantizeLinear" if into else "DequantizeLinear", **along)


MAKERS = (_arithmetic, _arithmetic, _activation, _pool, _concat, _gemm, _product, _quantize)
