# SPDX-License-Identifier: Apache-2.0
"""Constant integers of 16 and 32 bits keep their digits where the scale is of float16 or bfloat16."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

import onnx_multi_backend as omb

_SMALL = (np.arange(6) * 3 - 7).reshape(3, 2)
#: The integers, their zero point, and the scale.
FORMS = {
    "int32": (_SMALL * 2**20 + 1, 0, 2**-20),
    "uint16": (_SMALL + 32768, 32768, 1.0),
    "int16": (_SMALL + 20001, 20001, 0.5),
}


def prepared_with(preset: type[omb.Preset], text: str, opset: int, **known: np.ndarray) -> omb.PreparedModel:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')
    constant(model, known)
    return preset.prepare(model)


def constant(model: ModelProto, known: dict[str, np.ndarray]) -> None:
    kept = [v for v in model.graph.input if v.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in known.items())


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("names", ["x", "xsz", "sz", "z"])
@pytest.mark.parametrize("along", [False, True])
def test_they_are_scaled_before_they_are_rounded(
    preset: type[omb.Preset], half: str, kind: str, names: str, along: bool
) -> None:
    integers, zero, scale = FORMS[kind]
    made = np.dtype(ml_dtypes.bfloat16 if half == "bfloat16" else half)
    size = "[3]" if along else ""
    zeros = np.full(3, zero) if along else np.array(zero)
    given = {
        "x": integers.astype(kind),
        "s": (np.full(3, scale) if along else np.array(scale)).astype(made),
        "z": zeros.astype(kind),
    }
    text = f"""({kind}[3, 2] x, {half}{size} s, {kind}{size} z, {half} p) => ({half}[3, 2] y) {{
        d = DequantizeLinear <axis = 0> (x, s, z) y = Add (d, p) }}"""
    prepared = prepared_with(preset, text, 21, **{name: given.pop(name) for name in names})
    right = (integers - zero) * scale
    for _ in range(2):
        got = prepared.run({**given, "p": np.zeros((), made)})[0]
        np.testing.assert_allclose(got.astype(float), right.astype(made).astype(float), rtol=2**-8)


def test_numbers_beyond_float16_are_infinite(openvino: type[omb.Preset]) -> None:
    text = "(int32[3] x, float16 s) => (float16[3] y) { y = DequantizeLinear (x, s) }"
    prepared = prepared_with(openvino, text, 21, x=np.int32([70000, -(2**31), 5]))
    np.testing.assert_array_equal(prepared.run([np.float16(1)])[0], np.float16([np.inf, -np.inf, 5]))


def test_the_type_that_is_asked_for(openvino: type[omb.Preset]) -> None:
    text = f"(uint16[2] x, float16 s, uint16 z) => (float[2] y) {{ y = DequantizeLinear <output_dtype = {TensorProto.FLOAT}> (x, s, z) }}"
    known = {"x": np.uint16([32769, 40001]), "z": np.array(32768, np.uint16)}
    prepared = prepared_with(openvino, text, 23, **known)
    np.testing.assert_array_equal(prepared.run([np.float16(1)])[0], np.float32([1, 7233]))


@pytest.mark.parametrize("kind", ["int8", "uint16"])
def test_what_the_type_holds_is_left_as_it_is(openvino: type[omb.Preset], kind: str) -> None:
    text = f"({kind}[2] x, float16 s, float16[2] p) => (float16[2] y) {{ d = DequantizeLinear (x, s) y = Add (d, p) }}"
    known = {"x": np.array([100, 3], kind), "s": np.float16(0.5)}
    prepared = prepared_with(openvino, text, 21, **{k: np.asarray(v) for k, v in known.items()})
    assert "dequantize_wide" not in {a.pass_name for a in prepared.adaptations}
    np.testing.assert_array_equal(prepared.run([np.zeros(2, np.float16)])[0], np.float16([50, 1.5]))


@pytest.mark.parametrize("kind", ["int32", "uint16"])
def test_a_result_of_16_bits_of_a_scale_of_32(openvino: type[omb.Preset], kind: str) -> None:
    """The integers are scaled before they are rounded there too."""
    numbers = {"int32": [100000, -2000000, 70000, 5], "uint16": [65535, 65520, 3, 40000]}[kind]
    made = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 23]> g (float s) => (float16[4] y)
        <{kind}[4] x = {{{", ".join(map(str, numbers))}}}> {{ y = DequantizeLinear <output_dtype = 10> (x, s) }}"""
    )
    (y,) = openvino.prepare(made).run(np.float32(0.005))
    np.testing.assert_array_equal(y, (np.float32(numbers) * np.float32(0.005)).astype(np.float16))
