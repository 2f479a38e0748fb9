# SPDX-License-Identifier: Apache-2.0
"""What is computed of constants beyond int32 is whole where ONNX Runtime computes it ahead, and nothing else reads it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import parser

import onnx_multi_backend as omb

BIG = np.array([2**31 - 1, 200_000])


@pytest.mark.parametrize(
    ("kind", "body", "wanted"),
    [
        ("int64", "Add(c, c)", BIG + BIG),
        ("int64", "Mul(c, c)", BIG * BIG),
        ("int64", "ReduceSum(c)", np.array([BIG.sum()])),
        ("uint64", "BitwiseNot(c)", ~BIG.astype(np.uint64)),
    ],
)
def test_on_the_execution_provider(kind: str, body: str, wanted: np.ndarray, openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] z, {kind}[M] y)
            <{kind}[2] c = {{2147483647, 200000}}> {{ z = Relu(x) y = {body} }}"""
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        _, found = openvino_ep.prepare(model).run([np.float32([1, -2])])
    np.testing.assert_array_equal(found, wanted.astype(kind))


def test_openvino_by_itself_refuses_it(openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] z, int64[M] y)
            <int64[2] c = {2147483647, 200000}> { z = Relu(x) y = Add(c, c) }"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="its result leaves what int32 holds"):
        openvino.prepare(model)


def test_the_abs_of_constants_that_many_nodes_make(openvino: type[omb.Preset]) -> None:
    """A Mod is written with some 15 of them, which are read more than once."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (float[N] z, float[2] y)
            <float[2] a = {-7, 1}, float[2] b = {-0.98804426, -0.04070916}> { z = Relu(x) m = Mod<fmod = 1>(a, b) y = Abs(m) }"""
    )
    _, found = openvino.prepare(model).run([np.float32([1, -2])])
    np.testing.assert_allclose(
        found, np.abs(np.fmod(np.float32([-7, 1]), np.float32([-0.98804426, -0.04070916]))), rtol=1e-5
    )
