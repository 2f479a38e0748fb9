# SPDX-License-Identifier: Apache-2.0
"""Scales of shape [1], zero points that are left out, and biases of other scales, which ONNX Runtime's fusions refuse or misread."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

RNG = np.random.default_rng(3)
SCALES = "float[1] s = {0.02}, uint8[1] z = {128}, float t = {0.02}, uint8 u = {128}, float o = {0.05}"


def whole(*sizes: int) -> str:
    return ", ".join(map(str, RNG.integers(-20, 20, int(np.prod(sizes)))))


PRODUCT = (
    f"int8[4, 4] w = {{{whole(4, 4)}}}, int8 i = {{0}}, float k = {{0.03}}, int32[4] stored = {{100, -2000, 3000, 400}}"
)


def check(ort_cpu: type[omb.Preset], sizes: str, constants: str, nodes: str, tolerance: float) -> None:
    result = "uint8" if "y = QuantizeLinear" in nodes else "float"
    model = parsed(f"(float[{sizes}] x) => ({result}[] y) <{SCALES}, {constants}> {{ {nodes} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = RNG.normal(size=[2 if size == "n" else int(size) for size in sizes.split(", ")]).astype(np.float32)
    (right,) = unoptimized(model, x)
    (made,) = ort_cpu.prepare(model).run(x)
    assert made.shape == right.shape
    np.testing.assert_allclose(made.astype(float), right.astype(float), atol=tolerance, rtol=1e-3)


@pytest.mark.parametrize(
    "node",
    ["AveragePool <kernel_shape = [2, 2]> (d)", "Add (d, d)", "Mul (d, e)", "GlobalAveragePool (d)", "Sigmoid (d)"],
)
def test_one_scale_of_shape_1(ort_cpu: type[omb.Preset], node: str) -> None:
    nodes = f"""q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) r = QuantizeLinear (x, t, u) e = DequantizeLinear (r, t, u)
        f = {node} y = QuantizeLinear (f, s, z)"""
    check(ort_cpu, "n, 4, 4, 4", "float unused = {0}", nodes, 1.01)


@pytest.mark.parametrize("scale", ["s", "t"])
def test_a_relu_before_what_has_no_zero_point(ort_cpu: type[omb.Preset], scale: str) -> None:
    nodes = f"q = QuantizeLinear (x, t, u) d = DequantizeLinear (q, t, u) f = GlobalAveragePool (d) r = Relu (f) y = QuantizeLinear (r, {scale})"
    check(ort_cpu, "n, 4, 4, 4", "float unused = {0}", nodes, 1.01)


@pytest.mark.parametrize(
    "scale",
    [
        "float b = {0.0006}",
        "float b = {0.001}",
        "float[4] b = {0.0006, 0.001, 0.0006, 0.002}",
    ],
)
@pytest.mark.parametrize(
    "product",
    [
        "g = Gemm (d, v, c)",
        "g = Gemm <alpha = 0.5> (d, v, c)",
        "g = Gemm <beta = 2.0> (d, v, c)",
        "m = MatMul (d, v) g = Add (m, c)",
        "m = MatMul (d, v) g = Add (c, m)",
    ],
)
@pytest.mark.parametrize("end", ["y = Identity (g)", "y = QuantizeLinear (g, o, u)"])
def test_a_bias_keeps_its_scale(ort_cpu: type[omb.Preset], scale: str, product: str, end: str) -> None:
    axis = "<axis = 0>" if "[4]" in scale else ""
    nodes = f"""q = QuantizeLinear (x, t, u) d = DequantizeLinear (q, t, u) v = DequantizeLinear (w, k, i)
        c = DequantizeLinear {axis} (stored, b) {product} {end}"""
    check(ort_cpu, "n, 4", f"{PRODUCT}, {scale}", nodes, 1.01 if "Quantize" in end else 1e-3)


def test_a_bias_that_fits_stays(ort_cpu: type[omb.Preset]) -> None:
    model = parsed(
        f"""(float[n, 4] x) => (float[n, 4] y) <{SCALES}, {PRODUCT}, float b = {{0.0006}}> {{ q = QuantizeLinear (x, t, u)
        d = DequantizeLinear (q, t, u) v = DequantizeLinear (w, k, i) c = DequantizeLinear (stored, b) y = Gemm (d, v, c) }}"""
    )
    assert not ort_cpu.prepare(model).adaptations


def test_the_page_tells_every_pass() -> None:
    from onnx_multi_backend.engines.ort import (
        misfit_biases,
        plain_scales,
        scales_apart,
        transposed_outputs,
        unsigned_guesses,
    )

    page = (Path(__file__).parents[2] / "docs" / "int8.md").read_text("utf-8")
    section = page.partition("## What ONNX Runtime gets wrong of Q/DQ nodes")[2].partition("\n## ")[0]
    told = set(re.findall(r"\| `(\w+)` \|$", section, re.MULTILINE))
    assert told == {
        misfit_biases.biases_apart.__name__,
        plain_scales.plain_scales.__name__,
        scales_apart.scales_apart.__name__,
        transposed_outputs.outputs_unquantized.__name__,
        unsigned_guesses.signed_apart.__name__,
    }
