# SPDX-License-Identifier: Apache-2.0
"""Products with a constant that have more elements than what is before them, which OpenVINO took for a part of that."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

#: A leaky activation and normalizations, written out; `w` is the constant.
FORMS = {
    "negated twice": "a = Relu (x) n = Neg (x) b = Relu (n) c = Mul (w, b) d = Neg (c) y = Add (a, d)",
    "subtracted": "a = Relu (x) n = Neg (x) b = Relu (n) c = Mul (b, w) y = Sub (a, c)",
    "of the magnitude": "a = Abs (x) b = Sub (x, a) c = Mul (b, w) d = Mul (c, half) e = Relu (x) y = Add (e, d)",
    "halved first": "a = Abs (x) b = Sub (x, a) c = Mul (b, half) d = Mul (c, w) e = Relu (x) y = Add (e, d)",
    "root mean square": """p = Mul (x, x) m = ReduceMean <axes = [-1]> (p) a = Add (m, half) s = Sqrt (a) r = Reciprocal (s) z = Mul (x, r)
        y = Mul (w, z)""",
    "layer": """u = ReduceMean <axes = [-1]> (x) d = Sub (x, u) p = Mul (d, d) m = ReduceMean <axes = [-1]> (p) a = Add (half, m) s = Sqrt (a)
        z = Div (d, s) y = Mul (w, z)""",
    "operator": "z = LayerNormalization (x, one) y = Mul (w, z)",
    "an Identity between": "a = Relu (x) n = Neg (x) b = Relu (n) i = Identity (b) c = Mul (i, w) y = Sub (a, c)",
    "a Cast between": "z = LayerNormalization (x, one) i = Cast <to = 1> (z) y = Mul (i, w)",
    "a number between": "z = LayerNormalization (x, one) i = Mul (z, half) y = Mul (i, w)",
    "a quotient": "z = LayerNormalization (x, one) y = Div (z, w)",
    "a power": "p = Mul (x, x) m = ReduceMean <axes = [-1]> (p) a = Add (m, half) h = Neg (half) r = Pow (a, h) z = Mul (x, r) y = Mul (z, w)",
}
#: Sizes of what is read, and of the constant.
GROWING = [
    ((2, 1, 4, 8), (1, 3, 1, 1)),
    ((2, 1, 4, 8), (3, 1, 1)),
    ((2, 3, 4, 1), (8,)),
    ((1, 4), (3, 1)),
    ((1, 3, 4), (2, 1, 1)),
    ((2, 4), (3, 1, 1)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("sizes", "constant"), GROWING)
def test_it_grows(preset: type[omb.Preset], form: str, sizes: tuple[int, ...], constant: tuple[int, ...]) -> None:
    shape = ", ".join(map(str, sizes))
    values = ", ".join(f"{0.3 + 0.1 * i:.1f}" for i in range(np.prod(constant)))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{shape}] x) => (float y)
        <float[{", ".join(map(str, constant))}] w = {{{values}}}, float half = {{0.5}}, float[1] one = {{1}}> {{ {FORMS[form]} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(0).normal(size=sizes).astype(np.float32)
    (made,) = preset.prepare(model).run([x])
    (wanted,) = unoptimized(model, x)
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_what_keeps_its_sizes_stays_as_it_is(openvino: type[omb.Preset], form: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, 3, 2, 2] x) => (float[n, 3, 2, 2] y)
        <float[3, 1, 1] w = {{0.3, 0.4, 0.5}}, float half = {{0.5}}, float[2] one = {{1, 1}}> {{ {FORMS[form]} }}"""
    )
    assert "growth_apart" not in {made.pass_name for made in openvino.prepare(model).adaptations}


def test_a_long_row_of_quotients(openvino: type[omb.Preset]) -> None:
    rows = " ".join(f"d{i + 1} = Div (d{i}, d{i})" for i in range(60))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y)
        <float[3] w = {{1, 2, 3}}> {{ d0 = Relu (x) {rows} y = Mul (d60, w) }}"""
    )
    (made,) = openvino.prepare(model).run([np.ones((2, 3), np.float32)])
    np.testing.assert_allclose(made, [[1, 2, 3]] * 2)


@pytest.mark.parametrize("before", ["MatMul (m, x)", "MatMul (x, e)"])
def test_a_product_of_matrices_before_it(preset: type[omb.Preset], before: str) -> None:
    """What the first matrix has along its last axis is not what the product has, and what is computed of constants has no sizes yet."""
    made = "z = LayerNormalization (b, f)" if "(m" in before else "z = LayerNormalization (b, one)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3, 1] x) => (float[2, 3, 8] y) <float[8] w = {{1, 2, 3, 4, 5, 6, 7, 8}},
        float[3, 3] m = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[1, 1] e = {{2}}, float[1] one = {{1}}> {{
        f = Neg (one) b = {before} {made} y = Mul (z, w) }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 1)).astype(np.float32)
    (result,) = preset.prepare(model).run([x])
    np.testing.assert_allclose(result, unoptimized(model, x)[0], rtol=1e-4, atol=1e-5)
