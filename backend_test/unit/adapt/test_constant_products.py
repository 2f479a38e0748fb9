# SPDX-License-Identifier: Apache-2.0
"""Products, powers and sums of constants: right, or refused where OpenVINO would limit the result to int32."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import onnx_multi_backend as omb

#: What is computed of ``a`` (2, 2), ``b`` (2, 2), the axis ``n`` and indices, and the same in Python's integers.
FORMS: dict[str, tuple[str, Any]] = {
    "MatMul": ("MatMul(a, b)", lambda a, b: a @ b),
    "Gemm": ("Gemm<transA = 1, transB = 1>(a, b)", lambda a, b: a.T @ b.T),
    "Gemm with a bias": ("Gemm<beta = 2.0>(a, b, a)", lambda a, b: a @ b + 2 * a),
    "Einsum": ('Einsum<equation = "ij,kj->ik">(a, b)', lambda a, b: a @ b.T),
    "Pow": ("Pow(b, a)", lambda a, b: b**a),
    "Pow by floats": ("Pow(b, powers)", lambda a, b: b**a),
    "CumSum": ("CumSum(b, n)", lambda a, b: np.cumsum(b, 1)),
    "CumSum from the end, exclusive": (
        "CumSum<reverse = 1, exclusive = 1>(b, n)",
        lambda a, b: np.cumsum(b[:, ::-1], 1)[:, ::-1] - b,
    ),
    "ScatterElements": ('ScatterElements<reduction = "add">(a, rows, b)', lambda a, b: a + b[::-1]),
    "ScatterND": ('ScatterND<reduction = "add">(a, i, b)', lambda a, b: a + b[::-1]),
    "ReduceProd": ("ReduceProd(b, axes)", lambda a, b: b.prod(1, keepdims=True)),
    "ReduceSumSquare": ("ReduceSumSquare(b, axes)", lambda a, b: (b * b).sum(1, keepdims=True)),
}
BITS = {"uint32": 32, "int64": 64, "uint64": 64}
LARGEST = (1_700_000_000, 2**31 - 1)
CASES = [(form, kind) for form in FORMS for kind in BITS if "Pow" not in form or kind == "int64"]  # ONNX has no other


def _model(form: str, kind: str, largest: int) -> ModelProto:
    body = FORMS[form][0]
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] z, {kind}[A, B] y)
            <{kind}[2, 2] a = {{1, 2, 3, 1}}, {kind}[2, 2] b = {{{largest}, {largest // 2}, 5, 7}}, int64 n = {{1}}, int64[2, 1] i = {{1, 0}}, int64[2, 2] rows = {{1, 1, 0, 0}},
            int64[1] axes = {{1}}, float[2, 2] powers = {{1, 2, 3, 1}}> {{ z = Relu(x) y = {body} }}"""
    )


def _wanted(form: str, kind: str, largest: int) -> Any:
    a = np.array([[1, 2], [3, 1]], object)
    b = np.array([[largest, largest // 2], [5, 7]], object)
    exact = FORMS[form][1](a, b)
    modulus = 2 ** BITS[kind]
    if kind.startswith("u"):
        return (exact % modulus).astype(kind)
    return ((exact + modulus // 2) % modulus - modulus // 2).astype(kind)


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_beyond_int32_they_are_right_or_refused(form: str, kind: str, openvino: type[omb.Preset]) -> None:
    for largest in LARGEST:
        try:
            rep = openvino.prepare(_model(form, kind, largest))
        except omb.UnsupportedModelError:
            continue
        _, found = rep.run([np.array([1, -2], np.float32)])
        np.testing.assert_array_equal(found, _wanted(form, kind, largest))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize(
    ("form", "kind"), [case for case in CASES if "Pow" not in case[0]]
)  # ONNX Runtime rounds it to float64
def test_onnx_runtime_computes_them_beside_openvino(form: str, kind: str, openvino_ep: type[omb.Preset]) -> None:
    for largest in LARGEST:
        try:
            rep = openvino_ep.prepare(_model(form, kind, largest), fallback="full")
        except omb.UnsupportedModelError:
            continue
        _, found = rep.run([np.array([1, -2], np.float32)])
        np.testing.assert_array_equal(found, _wanted(form, kind, largest))


@pytest.mark.parametrize(("form", "kind"), [case for case in CASES if case[1] != "uint32"])
def test_within_int32_openvino_computes_them(form: str, kind: str, openvino: type[omb.Preset]) -> None:
    _, found = openvino.prepare(_model(form, kind, 30_000)).run([np.array([1, -2], np.float32)])
    np.testing.assert_array_equal(found, _wanted(form, kind, 30_000))


@pytest.mark.parametrize("form", ["CumSum", "Einsum", "Gemm", "MatMul", "Pow", "Pow by floats", "ReduceProd"])
def test_openvino_refuses_them_with_the_reason(form: str, openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="its result leaves what int32 holds"):
        openvino.prepare(_model(form, "int64", 2_000_000_000))


def test_many_factors_are_not_worked_out(openvino: type[omb.Preset]) -> None:
    """A product of six matrices of ones over all their indices at once takes minutes in Python's integers."""
    names = "bcdefg"
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] z, int64[A, B] y) {{
            z = Relu(x) y = Einsum<equation = "ij,jk,kl,lm,mn,no->io">({", ".join(names)}) }}"""
    )
    model.graph.initializer.extend(numpy_helper.from_array(np.ones((12, 12), np.int64), name) for name in names)
    _, found = openvino.prepare(model).run([np.array([1, -2], np.float32)])
    np.testing.assert_array_equal(found, np.full((12, 12), 12**5))


@pytest.mark.parametrize("alpha", ["inf", "nan"])
def test_a_factor_that_is_no_number_is_no_untyped_error(alpha: str, preset: type[omb.Preset]) -> None:
    model = _model("Gemm", "int64", 5)
    next(n for n in model.graph.node if n.op_type == "Gemm").attribute.append(
        helper.make_attribute("alpha", float(alpha))
    )
    with contextlib.suppress(omb.OnnxMultiBackendError):
        preset.prepare(model, fallback="full")


def test_an_exponent_that_is_no_number_is_a_typed_error(preset: type[omb.Preset]) -> None:
    model = _model("Pow", "int64", 5)
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [1], [b"q"]))
    next(n for n in model.graph.node if n.op_type == "Pow").input[1] = "s"
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(model)
