# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime computes reductions and powers of integers in float64, and limits them: they wrap around as sums and products do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceL1": lambda x, **how: np.abs(x).sum(**how),
    "ReduceProd": lambda x, **how: x.prod(**how),
    "ReduceSum": lambda x, **how: x.sum(**how),
    "ReduceSumSquare": lambda x, **how: (x * x).sum(**how),
}


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("sizes", ["2, 3, 4", "a, b, c"])
@pytest.mark.parametrize("axes", [(1,), (0, 2), (-1,), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [11, 18])
def test_reductions_wrap_around(
    ort_cpu: type[omb.Preset], operator: str, kind: str, sizes: str, axes: tuple[int, ...], keepdims: int, opset: int
) -> None:
    rank = 3 if keepdims else 3 - len(axes)
    made = f"{kind}[{', '.join('pqr'[:rank])}]" if rank else kind
    listed = ", ".join(map(str, axes))
    node = f"y = {operator} <axes = [{listed}], keepdims = {keepdims}> (x)"
    if opset == 18:
        node = (
            f"i = Constant <value = int64[{len(axes)}] {{{listed}}}> () y = {operator} <keepdims = {keepdims}> (x, i)"
        )
    model = onnx.parser.parse_model(
        f'<ir_version: 7, opset_import: ["": {opset}]> g ({kind}[{sizes}] x) => ({made} y) {{ {node} }}'
    )
    prepared = ort_cpu.prepare(model)
    limits, rng = np.iinfo(kind), np.random.default_rng(1)
    for low, high in ((limits.min, limits.max), (-9, 9)):
        x = rng.integers(low, high, (2, 3, 4), np.int64).astype(kind)
        right = REDUCTIONS[operator](x, axis=axes, keepdims=bool(keepdims), dtype=x.dtype)
        np.testing.assert_array_equal(prepared.run([x])[0], right)


def test_a_product_of_nothing(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 13]> g (int64[a, b] x) => (int64[a] y) { y = ReduceProd <axes = [1], keepdims = 0> (x) }'
    )
    np.testing.assert_array_equal(ort_cpu.prepare(model).run([np.zeros((2, 0), np.int64)])[0], [1, 1])


def test_the_number_of_elements_of_a_shape_is_multiplied_by_the_kernel(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 13]> g (float[a, b] x) => (int64[1] y) { s = Shape (x) y = ReduceProd (s) }'
    )
    prepared = ort_cpu.prepare(model)
    assert prepared.adaptations == ()
    np.testing.assert_array_equal(prepared.run([np.zeros((2, 3), np.float32)])[0], [6])


@pytest.mark.parametrize("exponent", [2, 3, 16])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_powers_of_a_known_exponent(ort_cpu: type[omb.Preset], kind: str, exponent: int) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 15]> g ({kind}[n] x) => ({kind}[n] y) <{kind} e = {{{exponent}}}> {{ y = Pow (x, e) }}'
    )
    x = np.array([2**20 + 1, -(2**20) - 3, 3, 0, 94906267], kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ort_cpu.prepare(model).run([x])[0], x ** x.dtype.type(exponent))


def test_other_operators_are_not_asked_for_axes(preset: type[omb.Preset]) -> None:
    """A rule looked at the second input of any node: a TypeError for constant strings."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 20]> g (string[n] x) => (string[n] y) {
            w = Constant <value_strings = ["a"]> () y = StringConcat (x, w) }"""
    )
    try:
        prepared = preset.prepare(model, fallback="full")
    except omb.UnsupportedModelError:
        return
    assert prepared.run([np.array(["b"], object)])[0].tolist() == ["ba"]
