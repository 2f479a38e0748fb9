# SPDX-License-Identifier: Apache-2.0
"""Sums of products of bytes do not saturate where a constant operand has its zero point or scale from the run, on processors without VNNI."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.byte_sums import byte_products

OPERATORS = ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
SIGNS = ("uint8", "int8")
STEP = np.float32(64)
FORMS = [
    (operator, x, w, constants, given)
    for operator, x, w in product(OPERATORS, SIGNS, SIGNS)
    for constants in ("x", "w", "xw")
    for given in ("zeros", "scales", "none")
    if operator.startswith("QLinear") or given != "scales"
    if constants != "xw" or given != "none"  # nothing is left for a run
    if (operator, x, w) != ("QLinearMatMul", "int8", "uint8")  # ONNX Runtime has no such kernel
]


def _ends(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    limits = np.iinfo(kind)
    return random.choice([limits.min, limits.min + 1, limits.max - 1, limits.max], shape).astype(kind)


def _expected(operator: str, x: Any, w: Any) -> Any:
    if "Conv" not in operator:
        return x @ w
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def _net(operator: str, names: list[str], values: dict[str, Any], feeds: dict[str, Any]) -> ModelProto:
    kind = TensorProto.INT32 if operator.endswith("Integer") else helper.np_dtype_to_tensor_dtype(values["x"].dtype)
    return models.model(
        [models.node(operator, names, ["y"])],
        [models.tensor(k, list(v.shape), helper.np_dtype_to_tensor_dtype(v.dtype)) for k, v in feeds.items()],
        [models.tensor("y", None, kind)],
        initializers={k: v for k, v in values.items() if k not in feeds},
        opsets={"": 14},
    )


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize(("operator", "x", "w", "constants", "given"), FORMS)
def test_sums_are_exact(
    operator: str, x: str, w: str, constants: str, given: str, preset: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    random = np.random.default_rng(0)
    conv = "Conv" in operator
    values: dict[str, Any] = {
        "x": _ends(random, x, (1, 4, 5, 5) if conv else (5, 32)),
        "w": _ends(random, w, (6, 4, 3, 3) if conv else (32, 6)),
        "xz": np.array(3, x),
        "wz": np.array(-7 if w == "int8" else 5, w),
        "xs": np.float32(0.5),
        "ws": np.float32(0.25),
        "step": STEP,
        "yz": np.array(3, x),
    }
    names = ["x", "w", "xz", "wz"]
    if operator.startswith("QLinear"):
        names = ["x", "xs", "xz", "w", "ws", "wz", "step", "yz"]
    of_run = {"zeros": {"xz", "wz"}, "scales": {"xs", "ws"}, "none": set[str]()}[given] | {"x", "w"} - set(constants)
    feeds = {name: values[name] for name in names if name in of_run}
    (found,) = preset.prepare(_net(operator, names, values, feeds), cache_dir=False, fallback="partial").run(feeds)
    wide = {name: values[name].astype(np.int64) for name in ("x", "w", "xz", "wz")}
    sums = _expected(operator, wide["x"] - wide["xz"], wide["w"] - wide["wz"])
    if operator.endswith("Integer"):
        np.testing.assert_array_equal(found, sums)
    else:
        limits = np.iinfo(x)
        right = np.clip(np.round(sums / (STEP * 8)) + 3, limits.min, limits.max)
        assert np.abs(found - right).max() <= 1  # a tie may be rounded either way


def test_a_constant_of_the_graph_around_a_branch(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    random = np.random.default_rng(0)
    x, w = _ends(random, "int8", (1, 4, 5, 5)), _ends(random, "uint8", (6, 4, 3, 3))
    y = models.tensor("y", None, TensorProto.INT32)
    inner = helper.make_graph([models.node("ConvInteger", ["x", "w"], ["y"])], "inner", [], [y])
    model = models.model(
        [models.node("If", ["go"], ["y"], then_branch=inner, else_branch=inner)],
        [models.tensor("go", [], TensorProto.BOOL), models.tensor("w", [6, 4, 3, 3], TensorProto.UINT8)],
        [y],
        opsets={"": 14},
    )
    model.graph.initializer.append(numpy_helper.from_array(x, "x"))
    (found,) = ort_cpu.prepare(model, cache_dir=False).run({"go": np.array(True), "w": w})
    np.testing.assert_array_equal(found, _expected("ConvInteger", x.astype(np.int64), w.astype(np.int64)))


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize("of_run", [["wz"], ["ws"], ["ws", "wz"], ["ws", ""]])
def test_dequantized_weights(
    of_run: list[str], default: bool, preset: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given by the run, or defaults of inputs, which a run may replace."""
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {"x": random.integers(200, 256, (4, 64)).astype(np.uint8)}
    w = random.integers(100, 128, (64, 8)).astype(np.int8)
    values: dict[str, Any] = {"w": w, "one": np.float32(1), "xz": np.uint8(0), "ws": np.float32(1), "wz": np.int8(0)}
    values["step"] = np.float32(8192)
    weights = ["w", "ws", *(["wz"] if "" not in of_run else [])]
    model = models.model(
        [
            models.node("DequantizeLinear", ["x", "one", "xz"], ["a"]),
            models.node("DequantizeLinear", weights, ["b"]),
            models.node("MatMul", ["a", "b"], ["f"]),
            models.node("QuantizeLinear", ["f", "step", "xz"], ["y"]),
        ],
        [
            models.tensor(
                name,
                list(np.shape((feeds | values)[name])),
                helper.np_dtype_to_tensor_dtype((feeds | values)[name].dtype),
            )
            for name in ("x", *filter(None, of_run))
        ],
        [models.tensor("y", None, TensorProto.UINT8)],
        initializers={name: v for name, v in values.items() if default or name not in of_run},
        opsets={"": 13},
    )
    if not default:
        feeds |= {name: values[name] for name in of_run if name}
    (found,) = preset.prepare(model, cache_dir=False).run(feeds)
    right = np.round(feeds["x"].astype(np.int64) @ w.astype(np.int64) / values["step"])
    assert np.abs(found - np.clip(right, 0, 255)).max() <= 1
