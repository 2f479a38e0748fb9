# SPDX-License-Identifier: Apache-2.0
"""Sums of products of bytes do not saturate where a constant operand has its zero point or scale from the run, on processors without VNNI."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx.parser
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


BRANCH = """y = If (go) <then_branch = t () => (int32[a, b, c, d] ty) { ty = ConvInteger (x, w, xz) },
    else_branch = e () => (int32[a, b, c, d] ey) { ey = ConvInteger (x, w, xz) }>"""


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("of_run", ["x", "xz", "x xz"])
def test_what_a_branch_reads_is_made_unsigned_before_it(
    of_run: str, preset: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The OpenVINO provider takes the branches as they are; with Casts in them it would fail to load."""
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    random = np.random.default_rng(0)
    values = {"x": _ends(random, "int8", (1, 4, 5, 5)), "xz": np.int8(3)}
    w = _ends(random, "uint8", (6, 4, 3, 3))
    shapes = {"x": "int8[1, 4, 5, 5] x", "xz": "int8 xz"}
    given = [shapes[name] for name in of_run.split()]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g (bool go, uint8[6, 4, 3, 3] w, {", ".join(given)}) => (int32[a, b, c, d] y) {{ {BRANCH} }}"""
    )
    stored = {name: value for name, value in values.items() if name not in of_run.split()}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items())
    prepared = preset.prepare(model, cache_dir=False)
    feeds = {name: values[name] for name in of_run.split()} | {"w": w}
    for go in (True, False):
        (found,) = prepared.run(feeds | {"go": np.array(go)})
        right = _expected("ConvInteger", values["x"].astype(np.int64) - 3, w.astype(np.int64))
        np.testing.assert_array_equal(found, right)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("zeros", ["xz, wz", "xz", ", wz", ""])
def test_a_product_that_the_provider_may_leave(
    zeros: str, openvino_ep: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    random = np.random.default_rng(0)
    x, w = random.integers(200, 256, (4, 64)).astype(np.uint8), random.integers(100, 128, (64, 8)).astype(np.int8)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g (uint8[4, 64] x, float[2] f{", uint8 xz" if "xz" in zeros else ""}) => (int32[a, b] y, float[c] r)
            <int8 wz = {{-3}}> {{ y = MatMulInteger (x, w{", " if zeros else ""}{zeros}) r = Relu (f) }}"""
    )
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    feeds = {"x": x, "f": np.zeros(2, np.float32)} | ({"xz": np.uint8(1)} if "xz" in zeros else {})
    found, _ = openvino_ep.prepare(model, cache_dir=False, fallback="full").run(feeds)
    wide = w.astype(np.int64) + (3 if "wz" in zeros else 0)
    np.testing.assert_array_equal(found, (x.astype(np.int64) - ("xz" in zeros)) @ wide)


def test_a_default_that_a_run_replaces(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    """By weights further from 0 than its own."""
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    random = np.random.default_rng(0)
    x, w = random.integers(200, 256, (4, 64)).astype(np.uint8), random.integers(100, 128, (64, 8)).astype(np.int8)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 14]> g (uint8[4, 64] x, int8[64, 8] w) => (int32[a, b] y) { y = MatMulInteger (x, w) }'
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones_like(w), "w"))
    (found,) = ort_cpu.prepare(model, cache_dir=False).run({"x": x, "w": w})
    np.testing.assert_array_equal(found, x.astype(np.int64) @ w.astype(np.int64))
