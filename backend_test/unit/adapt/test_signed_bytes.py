# SPDX-License-Identifier: Apache-2.0
"""Products of bytes of either sign, known or of a run, whose sums saturate on processors without VNNI."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.byte_sums import byte_products

N = 64
STEP = np.float32(8192)
QUANTIZED = ("Conv", "Gemm", "MatMul")
KINDS = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
#: Bytes near the end of their range.
HIGH = {"uint8": (200, 256), "int8": (100, 128)}

FORMS = [
    (operator, x, w, weights)
    for operator in (*QUANTIZED, "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
    for x, w in product(HIGH, HIGH)
    for weights in ("known", "given", *(["quantized"] if operator in QUANTIZED else []))
]


def net(operator: str, x: str, w: str, weights: str, constants: dict[str, Any]) -> ModelProto:
    """A product of `x` and weights: constants, inputs, or constants that the model quantizes."""
    conv = "Conv" in operator
    shapes = (f"4, {N}, 1, 1", f"8, {N}, 1, 1", "a, b, c, d") if conv else (f"4, {N}", f"{N}, 8", "a, b")
    inputs = [f"{'float' if weights == 'quantized' else x}[{shapes[0]}] x"]
    if weights == "given":
        inputs.append(f"{w}[{shapes[1]}] w")
    kind = x
    if operator.startswith("QLinear"):
        nodes = f"y = {operator} (x, one, xz, w, one, wz, step, yz)"
    elif operator.endswith("Integer"):
        nodes, kind = f"y = {operator} (x, w, xz, wz)", "int32"
    else:
        names = ("x", "w")
        nodes = ""
        if weights == "quantized":
            nodes, names = "xq = QuantizeLinear (x, one, xz) wq = QuantizeLinear (w, one, wz)", ("xq", "wq")
        nodes += f" a = DequantizeLinear ({names[0]}, one, xz) b = DequantizeLinear ({names[1]}, one, wz)"
        nodes += f" f = {operator} (a, b) y = QuantizeLinear (f, step, yz)"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 13]> g ({", ".join(inputs)}) => ({kind}[{shapes[2]}] y) {{ {nodes} }}'
    )
    read = {name for node in model.graph.node for name in node.input} - {value.name for value in model.graph.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if name in read
    )
    return model


@pytest.mark.parametrize("zeros", [(0, 0), (3, 5)])
@pytest.mark.parametrize(("operator", "x", "w", "weights"), FORMS)
def test_sums_of_products_are_exact(
    operator: str,
    x: str,
    w: str,
    weights: str,
    zeros: tuple[int, int],
    engine: type[omb.Preset],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    rng = np.random.default_rng(0)
    image, filters = rng.integers(*HIGH[x], (4, N)), rng.integers(*HIGH[w], (N, 8))
    expected = (image - zeros[0]) @ (filters - zeros[1])
    constants = {"one": np.float32(1), "step": STEP, "yz": np.array(0, x)}
    constants |= {"xz": np.array(zeros[0], x), "wz": np.array(zeros[1], w)}
    given: dict[str, Any] = {"x": image.astype(x), "w": filters.astype(w)}
    if weights == "quantized":
        given = {"x": np.float32(image - zeros[0]), "w": np.float32(filters - zeros[1])}
    if "Conv" in operator:
        given = {"x": given["x"][..., None, None], "w": given["w"].T[..., None, None].copy()}
    if weights != "given":
        constants["w"] = given.pop("w")
    found = engine.prepare(net(operator, x, w, weights, constants), cache_dir=False).run(given)[0].reshape(4, 8)
    if found.dtype == np.int32:
        np.testing.assert_array_equal(found, expected)
    else:
        limits = np.iinfo(found.dtype)
        right = np.clip(np.round(expected / STEP), limits.min, limits.max)
        assert np.abs(found - right).max() <= 1  # a tie may be rounded either way


@pytest.mark.parametrize("zero", [0, 3])
@pytest.mark.parametrize("x", HIGH)
@pytest.mark.parametrize("operator", ["QGemm", "MatMulIntegerToFloat"])
def test_onnx_runtimes_own_operators(
    operator: str, x: str, zero: int, ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of signed inputs and weights it is exact, and has no kernels for others."""
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    rng = np.random.default_rng(0)
    image, filters = rng.integers(*HIGH[x], (4, N)), rng.integers(*HIGH["int8"], (N, 8))
    constants: dict[str, Any] = {
        "one": np.float32(1),
        "xz": np.array(zero, x),
        "wz": np.int8(0),
        "w": filters.astype(np.int8),
    }
    inputs, kind = ["x", "w", "one", "one", "xz", "wz"], TensorProto.FLOAT
    if operator == "QGemm":
        constants |= {"step": STEP, "yz": np.array(0, x)}
        inputs, kind = ["x", "one", "xz", "w", "one", "wz", "", "step", "yz"], KINDS[x]
    model = models.model(
        [models.node(operator, inputs, ["y"], domain="com.microsoft")],
        [models.tensor("x", [4, N], KINDS[x])],
        [models.tensor("y", [4, 8], kind)],
        initializers=constants,
        opsets={"": 17, "com.microsoft": 1},
    )
    prepared = ort_cpu.prepare(model, cache_dir=False)
    (found,) = prepared.run([image.astype(x)])
    expected = (image - zero) @ filters
    if operator == "QGemm":
        limits = np.iinfo(found.dtype)
        assert np.abs(found - np.clip(np.round(expected / STEP), limits.min, limits.max)).max() <= 1
    else:
        np.testing.assert_array_equal(found, expected)
    assert bool(prepared.adaptations) == (x == "uint8")


QDQ = "a = DequantizeLinear (x, one, xz) b = DequantizeLinear (w, one, wz) f = MatMul (a, b) y = QuantizeLinear (f, step, xz)"
QLINEAR = "y = QLinearMatMul (x, one, xz, w, one, wz, step, xz)"
MATMULS = {"QDQ": QDQ, "QLinearMatMul": QLINEAR}


def _branched(nodes: str) -> str:
    branches = [
        " ".join(f"{letter}{word}" if word in ("a", "b", "f", "y") else word for word in re.split(r"\b", nodes))
        for letter in "te"
    ]
    return (
        f"y = If (go) <then_branch = t () => (uint8[4, 8] ty) {{ {branches[0]} }}, "
        f"else_branch = e () => (uint8[4, 8] ey) {{ {branches[1]} }}>"
    )


PLACES: dict[str, tuple[str, str, str]] = {}
for name, nodes in MATMULS.items():
    PLACES[f"{name} in a branch"] = (_branched(nodes), "", "")
    PLACES[f"{name} of weights that are an output"] = (f"{nodes} v = Identity (w)", "", ", int8[64, 8] v")
    PLACES[f"{name} of weights that are looked up too"] = (f"{nodes} v = Gather (w, rows)", "", ", int8[1, 8] v")
PLACES["QDQ, a scale of value_float"] = (
    f"unit = Constant <value_float = 1.0> () {QDQ.replace('(w, one, wz)', '(w, unit)')}",
    "",
    "",
)
PLACES["QDQ in a function"] = (
    "y = local.f (x, one, xz, w, wz, step)",
    f'<domain: "local", opset_import: ["": 13]> f (x, one, xz, w, wz, step) => (y) {{ {QDQ} }}',
    "",
)


@pytest.mark.parametrize("place", PLACES)
def test_wherever_the_weights_are(place: str, engine: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    nodes, function, outputs = PLACES[place]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13, "local": 1]> g (uint8[4, {N}] x, bool go) => (uint8[4, 8] y{outputs})
        <float one = {{1}}, float step = {{{STEP}}}, uint8 xz = {{0}}, int8 wz = {{0}}, int64[1] rows = {{3}}> {{ {nodes} }} {function}"""
    )
    rng = np.random.default_rng(0)
    image, filters = rng.integers(*HIGH["uint8"], (4, N)), rng.integers(*HIGH["int8"], (N, 8))
    model.graph.initializer.append(numpy_helper.from_array(filters.astype(np.int8), "w"))
    prepared = engine.prepare(model, cache_dir=False)
    for go in (True, False):
        found, *weights = prepared.run([image.astype(np.uint8), np.array(go)])
        assert np.abs(found - np.clip(np.round(image @ filters / STEP), 0, 255)).max() <= 1
        for kept in weights:
            np.testing.assert_array_equal(kept, filters if len(kept) == N else filters[[3]])


@pytest.mark.parametrize("operator", ["QLinearMatMul", "MatMulIntegerToFloat"])
def test_signed_inputs_of_no_declared_type(
    operator: str, ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime has no kernel for unsigned weights then, and is exact with signed ones."""
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    call = "com.microsoft.MatMulIntegerToFloat (h, w, one, one)"
    kind, zeros = "float", ""
    if operator == "QLinearMatMul":
        call, kind, zeros = "QLinearMatMul (h, one, z, w, one, z, step, z)", "int8", "z = Cast <to = 3> (zf)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]> g (int8[4, {N}] x, float zf) => ({kind}[4, 8] y)
        <float one = {{1}}, float step = {{{STEP}}}> {{ h = Identity (x) {zeros} y = {call} }}"""
    )
    rng = np.random.default_rng(0)
    image, filters = rng.integers(*HIGH["int8"], (4, N)), rng.integers(*HIGH["int8"], (N, 8))
    model.graph.initializer.append(numpy_helper.from_array(filters.astype(np.int8), "w"))
    (found,) = ort_cpu.prepare(model, cache_dir=False).run([image.astype(np.int8), np.float32(0)])
    right = image @ filters if kind == "float" else np.clip(np.round(image @ filters / STEP), -128, 127)
    assert np.abs(found - right).max() <= (0 if kind == "float" else 1)


@pytest.mark.parametrize("wide", ["W", "R"])
def test_weights_of_one_type_are_written_unsigned_together(
    wide: str, ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    rng = np.random.default_rng(0)
    constants = {
        name: rng.integers(-limit, limit, (1, size, 32)).astype(np.int8)
        for name, size, limit in (("W", 4, 127 if wide == "W" else 60), ("R", 8, 127 if wide == "R" else 60))
    }
    constants |= {"s": np.full((1,), 0.01, np.float32), "z": np.zeros((1,), np.int8)}
    model = models.model(
        [
            models.node(
                "DynamicQuantizeLSTM",
                ["x", "W", "R", "", "", "", "", "", "s", "z", "s", "z"],
                ["y"],
                domain="com.microsoft",
                hidden_size=8,
            )
        ],
        [models.tensor("x", [3, 2, 4])],
        [models.tensor("y", None)],
        initializers=constants,
        opsets={"": 17, "com.microsoft": 1},
    )
    prepared = ort_cpu.prepare(model, cache_dir=False)
    assert len(prepared.adaptations) == 2
    assert np.isfinite(prepared.run([rng.normal(size=(3, 2, 4)).astype(np.float32)])[0]).all()


def test_activations_with_several_scales_stay_signed(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenVINO refuses zero points of rows that are not 0."""
    monkeypatch.setattr(byte_products, "are_exact", lambda: False)
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[2, 2, 2] x) => (float[a, b, c] y)
            <float[2] s = {0.5, 0.25}, int8[2] z = {0, 0}, float t = {0.5}, uint8[2, 2] w = {5, 4, 6, 19}> {
            q = QuantizeLinear <axis = 1> (x, s, z) d = DequantizeLinear <axis = 1> (q, s, z)
            f = DequantizeLinear (w, t) y = MatMul (d, f) }"""
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    (y,) = openvino.prepare(model).run([x])
    np.testing.assert_allclose(y, x @ (np.float32([[5, 4], [6, 19]]) / 2), rtol=1e-4)
