# SPDX-License-Identifier: Apache-2.0
"""Scales along an axis of a size that is known only at run time, of which OpenVINO takes the last axis."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

SCALES = np.float32([0.05, 0.1, 0.03])
ZEROS = np.int8([3, -7, 11])
CONSTANTS = "<float[3] s = {0.05, 0.1, 0.03}, int8[3] z = {3, -7, 11}>"


@pytest.mark.parametrize("known", ["constant", "named", "open"])
@pytest.mark.parametrize(
    "sizes", ["a, b, c, d", "a, 3, 3, 3", "3, b, 3, 3", "3, 3, c, 3", "a, b, c", "3, b, 3", "a, 3"]
)
@pytest.mark.parametrize("axis", [0, 1, -2, -1])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_are_taken_along_their_axis(
    preset: type[omb.Preset], operator: str, axis: int, sizes: str, known: str
) -> None:
    quantizes, rank = operator == "QuantizeLinear", len(sizes.split(","))
    given, made = ("float", "int8") if quantizes else ("int8", "float")
    size = {"named": "3", "open": "n"}.get(known, "")
    inputs = f"{given}[{sizes}] x" + (f", float[{size}] s, int8[{size}] z" if size else "")
    results = ", ".join("pqrt"[:rank])
    prepared = preset.prepare(
        parsed(
            f"({inputs}) => ({made}[{results}] y) {'' if size else CONSTANTS} {{ y = {operator} <axis = {axis}> (x, s, z) }}"
        ),
        fallback="full",
    )
    x = np.random.default_rng(rank).integers(-40, 40, [3] * rank)
    spread = [3 if i == axis % rank else 1 for i in range(rank)]
    scales, zeros = SCALES.reshape(spread), ZEROS.reshape(spread)
    values = (x * 0.0137).astype(np.float32) if quantizes else x.astype(np.int8)
    right = (
        np.clip(np.rint(values / scales) + zeros, -128, 127) if quantizes else (values.astype(float) - zeros) * scales
    )
    result = prepared.run([values, SCALES, ZEROS] if size else values)[0]
    np.testing.assert_allclose(result.astype(float), right, atol=1 if quantizes else 1e-5)


def _after(made: str) -> ModelProto:
    """Quantized along the middle axis of what control flow gives."""
    quantized = "y = QuantizeLinear <axis = 1> (v, s, z)"
    return parsed(f"(float[a, b, e] x, bool c) => (int8[p, q, r] y) {CONSTANTS} {{ {made} {quantized} }}")


SCAN = "v = Scan <num_scan_inputs = 1, body = b (float[3, 1] p) => (float[3, 1] q) { q = Abs(p) }> (x)"
BRANCHES = """v = If <then_branch = t () => (float[N, 3, M] q) { q = Abs(x) },
                      else_branch = e () => (float[N, 3, M] r) { r = Neg(x) }> (c)"""
LOOP = """n = Constant <value_int = 1> ()
          v = Loop <body = b (int64 i, bool go, float[N, 3, M] p) => (bool on, float[N, 3, M] q) { on = Identity(go) q = Abs(p) }> (n, , x)"""


@pytest.mark.parametrize("made", [SCAN, BRANCHES], ids=["Scan", "If"])
def test_scales_of_what_control_flow_gives(preset: type[omb.Preset], made: str) -> None:
    x = np.float32([[[0.31], [2], [-1.33]], [[0.12], [4.4], [1]]])
    result = preset.prepare(_after(made), fallback="full").run([x, np.array(True)])[0]
    right = np.clip(np.rint(np.abs(x) / SCALES.reshape(3, 1)) + ZEROS.reshape(3, 1), -128, 127)
    np.testing.assert_array_equal(result, right)


def test_without_a_known_rank_it_is_refused(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="of a shape that is known only at run time"):
        openvino.prepare(_after(LOOP))
