# SPDX-License-Identifier: Apache-2.0
"""Quantized values with scales, zero points or weights that only a run tells, and what stands beside them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.small_models import parsed
from backend_test.unit.adapt.test_contrib_rules import contrib

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: The model's low-precision transformations are switched off because of it.
SPLIT = "w = DequantizeLinear (v, half, seven) a, b = Split (w, parts) k = MatMul (z, a)"
SPLIT_CONSTANTS = (
    "uint8[4, 2] v = {1, 2, 3, 4, 5, 6, 7, 8}, float half = {0.5}, uint8 seven = {7}, int64[2] parts = {2, 2}"
)


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def dequantized(x: np.ndarray, scale: float, zero: int) -> np.ndarray:
    """What int8 stands for that a number is quantized to."""
    return (np.clip(np.rint(x / np.float32(scale)) + zero, -128, 127) - zero) * np.float32(scale)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
def test_weights_that_a_run_tells(preset: type[omb.Preset], operator: str, rows: int) -> None:
    """OpenVINO took other scales from the fifth column on."""
    scales = (generator().random(8) * 0.005 + 0.001).astype(np.float32)
    held = ", ".join(map(repr, scales.tolist()))
    model = parsed(
        f"""(float[{rows}, 3] x, int8[3, 8] w) => (float[{rows}, 8] y)
        <float s = {{0.05}}, int8 z = {{0}}, float[8] t = {{{held}}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) e = DequantizeLinear (w, t) y = {operator} (d, e) }}""",
        21,
    )
    prepared = preset.prepare(model, fallback="full")
    for seed in (1, 2):
        x = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
        w = np.random.default_rng(seed).integers(-60, 61, (3, 8)).astype(np.int8)
        found = prepared.run([x, w])[0]
        np.testing.assert_allclose(found, dequantized(x, 0.05, 0) @ (w * scales), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("operator", ["Add", "Mul"])
@pytest.mark.parametrize("reduction", ["GlobalAveragePool (x)", "ReduceMean <axes = [-1]> (x)"])
def test_a_constant_for_each_channel_behind_what_is_quantized(
    preset: type[omb.Preset], reduction: str, operator: str
) -> None:
    """OpenVINO took elements of other channels, once its low-precision transformations were switched off."""
    model = parsed(
        f"""(float[3, 4, 6] x, float[2, 2] z) => (float[3, 4, 1] y, float[2, 2] k)
        <float s = {{0.0124}}, int8 o = {{-10}}, float[4, 1] c = {{1, -2, 3, 0.5}}, {SPLIT_CONSTANTS}> {{
        r = {reduction} q = QuantizeLinear (r, s, o) d = DequantizeLinear (q, s, o) y = {operator} (d, c) {SPLIT} }}"""
    )
    x = generator().normal(size=(3, 4, 6)).astype(np.float32)
    channels = np.float32([[1], [-2], [3], [0.5]])
    before = dequantized(x.mean(2, keepdims=True), 0.0124, -10)
    found = preset.prepare(model, fallback="full").run([x, np.ones((2, 2), np.float32)])[0]
    np.testing.assert_allclose(found, before + channels if operator == "Add" else before * channels, rtol=1e-4)


@pytest.mark.parametrize(
    ("operator", "jump"),
    [("Sign", np.sign), ("Floor", np.floor), ("Cast <to = 9>", lambda d: d != 0), ("Ceil", np.ceil)],
)
@pytest.mark.parametrize("between", ["", "Reshape"])
def test_what_is_dequantized_from_the_zero_point_is_zero(
    preset: type[omb.Preset], operator: str, jump: np.ufunc, between: str
) -> None:
    """OpenVINO had 1e-9, once its low-precision transformations were switched off."""
    moved = "e = Reshape (d, sizes)" if between else "e = Identity (d)"
    kind = "bool" if "Cast" in operator else "float"
    model = parsed(
        f"""(float[7] x, float[2, 2] z) => ({kind}[7] y, float[2, 2] k)
        <float s = {{0.0391579}}, int8 o = {{8}}, int64[1] sizes = {{7}}, {SPLIT_CONSTANTS}> {{
        q = QuantizeLinear (x, s, o) d = DequantizeLinear (q, s, o) {moved} y = {operator} (e) {SPLIT} }}"""
    )
    x = np.float32([-0.1, -0.04, -0.01, 0, 0.01, 0.04, 0.1])
    found = preset.prepare(model, fallback="full").run([x, np.ones((2, 2), np.float32)])[0]
    assert found.tolist() == jump(dequantized(x, 0.0391579, 8)).tolist()


@pytest.mark.parametrize("between", ["", "Identity", "Cast"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_channels_that_are_quantized_again(preset: type[omb.Preset], kind: str, between: str) -> None:
    """In open sizes OpenVINO took the first scale for all."""
    scales = (generator().random(5) * 0.03 + 0.005).astype(np.float32)
    held = ", ".join(map(repr, scales.tolist()))
    moved = {"": "", "Identity": "b = Identity (a)", "Cast": "h = Cast <to = 11> (a) b = Cast <to = 1> (h)"}[between]
    model = parsed(
        f"""({kind}[n, m] x) => (uint8[n, m] y) <float[5] s = {{{held}}}, float t = {{0.03}}, uint8 o = {{100}}> {{
        a = DequantizeLinear <axis = 1> (x, s) {moved} y = QuantizeLinear ({"b" if moved else "a"}, t, o) }}""",
        19,
    )
    x = generator().integers(0, 100, (2, 5)).astype(kind)
    found = preset.prepare(model, fallback="full").run([x])[0]
    assert found.tolist() == (np.clip(np.rint(x * scales / np.float32(0.03)) + 100, 0, 255)).tolist()


@pytest.mark.parametrize("between", ["Identity (a)", "Transpose <perm = [0]> (a)", "Mul (a, unit)"])
@pytest.mark.parametrize("zeros", [("o", "one"), ("one", "o"), ("o", "o")])
def test_a_choice_with_a_zero_point_that_a_run_tells(
    preset: type[omb.Preset], zeros: tuple[str, str], between: str
) -> None:
    """It ended the process of ONNX Runtime."""
    model = parsed(
        f"""(bool[4] c, uint8[4] x, uint8[4] z, uint8 o) => (uint8[4] y) <float s = {{0.1}}, float unit = {{1}}, uint8 one = {{1}}> {{
        a = DequantizeLinear (x, s, {zeros[0]}) b = DequantizeLinear (z, s, {zeros[1]}) d = {between} w = Where (c, d, b)
        y = QuantizeLinear (w, s, one) }}"""
    )
    c, x = np.array([True, False, True, False]), np.arange(4, 8, dtype=np.uint8)
    found = preset.prepare(model, fallback="full").run([c, x, x + 1, np.uint8(3)])[0]
    one, other = (3 if zero == "o" else 1 for zero in zeros)
    assert found.tolist() == np.where(c, x - one + 1, x + 1 - other + 1).tolist()


@pytest.mark.parametrize("place", [3, 6])
def test_a_quantized_where(preset: type[omb.Preset], place: int) -> None:
    """It ended the process of ONNX Runtime."""
    names = ["c", "x", "s", "o", "z", "s", "o", "s", "o"]
    names[place] = "p"
    given = [models.tensor("x", [4], TensorProto.UINT8), models.tensor("z", [4], TensorProto.UINT8)]
    given += [models.tensor("p", [], TensorProto.UINT8)]
    held = {"c": np.array([True, False, True, False]), "s": np.float32(0.1), "o": np.uint8(1)}
    x = np.arange(4, 8, dtype=np.uint8)
    model = contrib("QLinearWhere", names, ["y"], given, held)
    found = preset.prepare(model, fallback="full").run([x, x + 1, np.uint8(3)])[0]
    shifts = (2, 0) if place == 3 else (0, 2)
    assert found.tolist() == np.where(held["c"], x - shifts[0], x + 1 - shifts[1]).tolist()


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_integers_multiplied_to_floats(preset: type[omb.Preset], *, zero: bool, bias: bool) -> None:
    """OpenVINO scaled constant weights in place, once more in each run."""
    w = generator().integers(-90, 90, (4, 3)).astype(np.int8)
    x = generator().integers(-90, 90, (2, 4)).astype(np.int8)
    names = ["x", "w", "s", "t", "", "o" if zero else "", "b" if bias else ""]
    held = {"w": w, "s": np.float32(0.01), "b": np.float32([1, 2, 3])}
    given = [models.tensor("x", [2, 4], TensorProto.INT8), models.tensor("t", [])]
    given += [models.tensor("o", [], TensorProto.INT8)] if zero else []
    model = contrib("MatMulIntegerToFloat", names, ["y"], given, {k: v for k, v in held.items() if k in names})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    prepared = preset.prepare(model, fallback="full")
    for scale in (0.02, 0.02, 0.5):
        found = prepared.run([x, np.float32(scale), *([np.int8(3)] if zero else [])])[0]
        wanted = x.astype(float) @ (w.astype(float) - 3 * zero) * 0.01 * scale + (held["b"] if bias else 0)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_weights_of_four_bits_whose_scales_a_run_tells_are_refused(openvino: type[omb.Preset]) -> None:
    """OpenVINO scales them in place, once more in each run."""
    b = generator().integers(0, 255, (3, 2, 16)).astype(np.uint8)
    given = [models.tensor("x", [2, 64]), models.tensor("s", [3, 2])]
    model = contrib("MatMulNBits", ["x", "b", "s"], ["y"], given, {"b": b}, K=64, N=3, bits=4, block_size=32)
    with pytest.raises(omb.UnsupportedModelError, match="scaled in place"):
        openvino.prepare(model)


@pytest.mark.parametrize("level", [0, 4])
def test_weights_of_four_bits_whose_zero_points_a_run_tells(ort_cpu: type[omb.Preset], level: int) -> None:
    """In int8, ONNX Runtime took others."""
    b, scales = generator().integers(0, 255, (3, 2, 8)).astype(np.uint8), generator().random(6).astype(np.float32)
    given = [models.tensor("x", [2, 32]), models.tensor("z", [3], TensorProto.UINT8)]
    attributes = {"K": 32, "N": 3, "bits": 4, "block_size": 16, "accuracy_level": level}
    model = contrib("MatMulNBits", ["x", "b", "s", "z"], ["y"], given, {"b": b, "s": scales}, **attributes)
    x, zeros = generator().normal(size=(2, 32)).astype(np.float32), np.uint8([0x87, 0x12, 0xF0])
    held = (
        np.stack([b & 15, b >> 4], -1).reshape(3, 2, 16)
        - np.stack([zeros & 15, zeros >> 4], -1).astype(float)[..., None]
    )
    wanted = x @ (held * scales.reshape(3, 2, 1)).reshape(3, 32).T
    np.testing.assert_allclose(ort_cpu.prepare(model).run([x, zeros])[0], wanted, rtol=1e-3, atol=1e-3)


def test_weights_that_the_model_quantizes_stay_in_eight_bits(openvino: type[omb.Preset]) -> None:
    """So a model that was trained for it is written."""
    model = parsed(
        """(float[n, 2] x) => (float[n, 4] y) <float s = {0.05}, int8 z = {0}, float[2, 4] w = {1, -2, 3, 4, 5, 6, 7, 8},
        float[4] t = {0.1, 0.2, 0.3, 0.4}, int8[4] o = {0, 0, 0, 0}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) v = QuantizeLinear <axis = 1> (w, t, o)
        e = DequantizeLinear <axis = 1> (v, t, o) y = MatMul (d, e) }"""
    )
    changes = {change.pass_name for change in openvino.prepare(model).adaptations}
    assert "low_precision" not in changes


@pytest.mark.parametrize("level", [1, 4])
def test_weights_of_four_bits_whose_scales_a_run_tells(ort_cpu: type[omb.Preset], level: int) -> None:
    """In int8, ONNX Runtime multiplied by other memory."""
    b = generator().integers(0, 255, (3, 2, 16)).astype(np.uint8)
    weights = np.stack([b & 15, b >> 4], -1).reshape(3, 2, 32).astype(float) - 8
    given = [models.tensor("x", [2, 64]), models.tensor("s", [3, 2])]
    attributes = {"K": 64, "N": 3, "bits": 4, "block_size": 32, "accuracy_level": level}
    prepared = ort_cpu.prepare(contrib("MatMulNBits", ["x", "b", "s"], ["y"], given, {"b": b}, **attributes))
    x, scales = generator().normal(size=(2, 64)), generator().normal(size=(3, 2))
    found = prepared.run([x.astype(np.float32), scales.astype(np.float32)])[0]
    np.testing.assert_allclose(found, x @ (weights * scales[..., None]).reshape(3, 64).T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("moved", ["Identity (e)", "Slice (e, first, last)", "Mul (e, unit)"])
@pytest.mark.parametrize("last", ["y = Add (p, c)", "y = Concat <axis = 0> (p, c)"])
def test_a_vector_by_weights_with_a_scale_for_each_column(preset: type[omb.Preset], last: str, moved: str) -> None:
    """OpenVINO added the axis of the weights' rows."""
    scales = (generator().random(4) * 0.005 + 0.001).astype(np.float32)
    model = parsed(
        f"""(float[2] x) => (float[k] y) <float s = {{0.05}}, int8 z = {{0}}, int8[2, 4] w = {{1, -2, 3, 4, 5, 6, 7, 8}},
        float[4] t = {{{", ".join(map(repr, scales.tolist()))}}}, float[4] c = {{1, 2, 3, 4}}, float unit = {{1}}, int64[1] first = {{0}}, int64[1] last = {{2}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) e = DequantizeLinear <axis = 1> (w, t) v = {moved}
        p = MatMul (d, v) {last} }}""",
        21,
    )
    x, c = np.float32([0.7, -0.2]), np.float32([1, 2, 3, 4])
    product = dequantized(x, 0.05, 0) @ (np.float32([[1, -2, 3, 4], [5, 6, 7, 8]]) * scales)
    wanted = product + c if "Add" in last else np.concatenate([product, c])
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, strict=True)


@pytest.mark.parametrize(
    "made",
    [
        "MeanVarianceNormalization <axes = [2]> (x)",
        "InstanceNormalization (x, ones, zeros)",
        'Resize <mode = "linear"> (x, , sizes)',
    ],
)
def test_a_constant_along_the_last_axis_behind_what_is_quantized(preset: type[omb.Preset], made: str) -> None:
    """OpenVINO read it beyond its end, once its low-precision transformations were switched off."""
    model = parsed(
        f"""(float[3, 8, 6] x, float[2, 2] z) => (float[3, 8, 6] y, float[3, 8, 6] r, float[2, 2] k)
        <float s = {{0.03}}, int8 o = {{-7}}, float[6] c = {{1, -2, 3, 0.5, 4, -1}}, float[8] ones = {{{", ".join("1" * 8)}}},
        float[8] zeros = {{{", ".join("0" * 8)}}}, float[3] sizes = {{1, 1, 1}}, {SPLIT_CONSTANTS}> {{
        r = {made} q = QuantizeLinear (r, s, o) d = DequantizeLinear (q, s, o) y = Mul (d, c) {SPLIT} }}"""
    )
    x = generator().normal(size=(3, 8, 6)).astype(np.float32)
    y, r, _ = preset.prepare(model, fallback="full").run([x, np.ones((2, 2), np.float32)])
    np.testing.assert_allclose(y, dequantized(r, 0.03, -7) * np.float32([1, -2, 3, 0.5, 4, -1]), atol=0.13)


@pytest.mark.parametrize("zero", ["", "o"])
def test_a_transposed_convolution_by_weights_whose_scale_a_run_tells(openvino: type[omb.Preset], zero: str) -> None:
    """It ended the process of OpenVINO."""
    model = parsed(
        f"""(float[1, 3, 4, 4] x, float t) => (float[1, 2, 4, 4] y) <float s = {{0.05}}, int8 z = {{0}}, int8 o = {{5}},
        int8[3, 2, 1, 1] w = {{1, -2, 3, 4, 5, 6}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) e = DequantizeLinear (w, t, {zero})
        y = ConvTranspose (d, e) }}"""
    )
    x = generator().normal(size=(1, 3, 4, 4)).astype(np.float32)
    weights = np.float32([[1, -2], [3, 4], [5, 6]]) - (5 if zero else 0)
    prepared = openvino.prepare(model)
    for scale in (0.01, 0.01, 0.5):
        found = prepared.run([x, np.float32(scale)])[0]
        wanted = np.einsum("nchw,cd->ndhw", dequantized(x, 0.05, 0), weights * scale)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("sizes", ["4, 3, 2", "1, 4, 3, 2", "2", "a, 2"])
def test_a_product_of_signed_bytes_with_a_bias(preset: type[omb.Preset], sizes: str) -> None:
    """ONNX Runtime refused the Reshape that it put before it."""
    model = parsed(
        f"""(float[{sizes}] x) => (float y) <float s = {{0.05}}, int8 z = {{0}}, float t = {{1}}, float[4] c = {{1, 2, 3, 4}},
        int8[2, 4] w = {{1, -2, 3, 4, 5, 6, 7, 8}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) e = DequantizeLinear (w, t) p = MatMul (d, e)
        y = Add (p, c) }}""",
        21,
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    shape = [int(size) if size != "a" else 3 for size in sizes.split(", ")]
    x = generator().normal(size=shape).astype(np.float32)
    found = preset.prepare(model, fallback="full").run([x])[0]
    wanted = dequantized(x, 0.05, 0) @ np.float32([[1, -2, 3, 4], [5, 6, 7, 8]]) + np.float32([1, 2, 3, 4])
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
