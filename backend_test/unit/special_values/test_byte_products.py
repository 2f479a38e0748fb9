# SPDX-License-Identifier: Apache-2.0
"""Sums of products of bytes do not saturate, on processors without VNNI either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.byte_sums import byte_products

N = 64
RANDOM = np.random.default_rng(0)
#: Large enough for 255 times the sum of two of them to be beyond 16 bits.
W = RANDOM.integers(100, 127, (N, 8)).astype(np.int8)
X = RANDOM.integers(220, 255, (4, N)).astype(np.uint8)
Y = X.astype(np.int64) @ W.astype(np.int64)
SCALE = np.float32(16384)

CONSTANTS: dict[str, Any] = {
    "w": W,
    "filter": W.T[:, :, None, None].copy(),
    "one": np.float32(1),
    "ones": np.ones(8, np.float32),
    "zero": np.uint8(0),
    "signed": np.int8(0),
    "signeds": np.zeros(8, np.int8),
    "scale": SCALE,
}


def net(nodes: list[NodeProto], x: Any, kind: int, out: int) -> ModelProto:
    for i, node in enumerate(nodes):
        node.name = f"{node.op_type}_{i}"
    made = models.model(
        nodes, [models.tensor("x", list(x.shape), kind)], [models.tensor("y", None, out)], opsets={"": 13}
    )
    read = {name for node in nodes for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in CONSTANTS.items() if k in read)
    return made


def quantized(operators: list[NodeProto], scales: str = "one") -> list[NodeProto]:
    """Activations through Q/DQ, weights ``w`` through DQ, and the result through Q."""
    return [
        models.node("QuantizeLinear", ["x", "one", "zero"], ["q"]),
        models.node("DequantizeLinear", ["q", "one", "zero"], ["a"]),
        models.node(
            "DequantizeLinear",
            ["filter" if operators[0].op_type == "Conv" else "w", scales, *(["signeds"] if scales == "ones" else [])],
            ["b"],
            **({"axis": 0 if operators[0].op_type == "Conv" else 1} if scales == "ones" else {}),
        ),
        *operators,
        models.node("QuantizeLinear", ["f", "scale", "zero"], ["y"]),
    ]


FLOATS = X.astype(np.float32)
IMAGES = FLOATS[:, :, None, None].copy()
U8, I32 = TensorProto.UINT8, TensorProto.INT32
CASES: dict[str, tuple[ModelProto, NDArray[Any], NDArray[Any]]] = {}
for scales in ("one", "ones"):
    product, conv = models.node("MatMul", ["a", "b"], ["f"]), models.node("Conv", ["a", "b"], ["f"])
    gemm = models.node("Gemm", ["a", "b"], ["f"])
    CASES[f"MatMul, {scales}"] = (net(quantized([product], scales), FLOATS, TensorProto.FLOAT, U8), FLOATS, Y)
    CASES[f"Gemm, {scales}"] = (net(quantized([gemm], scales), FLOATS, TensorProto.FLOAT, U8), FLOATS, Y)
    CASES[f"Conv, {scales}"] = (
        net(quantized([conv], scales), IMAGES, TensorProto.FLOAT, U8),
        IMAGES,
        Y[..., None, None],
    )
CASES["two products of a weight"] = (
    net(
        quantized(
            [
                models.node("MatMul", ["a", "b"], ["first"]),
                models.node("MatMul", ["a", "b"], ["second"]),
                models.node("Max", ["first", "second"], ["f"]),
            ]
        ),
        FLOATS,
        TensorProto.FLOAT,
        U8,
    ),
    FLOATS,
    Y,
)
CASES["QLinearMatMul"] = (
    net([models.node("QLinearMatMul", ["x", "one", "zero", "w", "one", "signed", "scale", "zero"], ["y"])], X, U8, U8),
    X,
    Y,
)
CASES["QLinearConv"] = (
    net(
        [models.node("QLinearConv", ["x", "one", "zero", "filter", "one", "signed", "scale", "zero"], ["y"])],
        X[:, :, None, None],
        U8,
        U8,
    ),
    X[:, :, None, None].copy(),
    Y[..., None, None],
)
CASES["MatMulInteger"] = (net([models.node("MatMulInteger", ["x", "w"], ["y"])], X, U8, I32), X, Y)
CASES["ConvInteger"] = (
    net([models.node("ConvInteger", ["x", "filter"], ["y"])], X[:, :, None, None], U8, I32),
    X[:, :, None, None].copy(),
    Y[..., None, None],
)


@pytest.mark.parametrize("processor", ["this", "without VNNI"])
@pytest.mark.parametrize("case", CASES)
def test_products_are_exact(
    case: str, processor: str, engine: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x, expected = CASES[case]
    if processor != "this":
        monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    rep = engine.prepare(model, cache_dir=False)
    changes = [change.pass_name for change in rep.adaptations]
    found = rep.run([x])[0]
    if found.dtype == np.uint8:
        steps = expected / SCALE
        assert np.abs(found - np.clip(steps, 0, 255)).max() <= 0.5 + 1e-3, changes
    else:
        np.testing.assert_array_equal(found, expected)
    if not byte_products.are_exact() and not case.endswith("Integer"):  # which engines compute without that instruction
        assert "unsigned_weights" in changes


def test_narrow_weights_stay_as_they_are(engine: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    model = ModelProto()
    model.CopyFrom(CASES["MatMul, one"][0])
    for tensor in model.graph.initializer:
        if tensor.name == "w":
            tensor.CopyFrom(numpy_helper.from_array((W // 2).astype(np.int8), "w"))
    assert engine.prepare(model, cache_dir=False).adaptations == ()
