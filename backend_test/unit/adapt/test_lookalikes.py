# SPDX-License-Identifier: Apache-2.0
"""Functions that engines recognize in what is nearly one, and forms of which they lose an axis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def _rotary(cut: int, columns: str, sizes: str = "1, 2, 3, 4") -> ModelProto:
    return parsed(
        f"""(float[{sizes}] x, float[1, 1, 3, 4] c, float[1, 1, 3, {columns}] s) => (float[e, f, g, h] y)
        <int64[1] zero = {{0}}, int64[1] cut = {{{cut}}}, int64[1] end = {{99}}, int64[1] axis = {{3}}> {{
        a = Slice (x, zero, cut, axis) b = Slice (x, cut, end, axis) n = Neg (b) r = Concat <axis = -1> (n, a) p = Mul (x, c) q = Mul (r, s) y = Add (p, q) }}"""
    )


@pytest.mark.parametrize(("cut", "columns", "given"), [(2, "1", 1), (2, "k", 1), (2, "k", 4), (3, "4", 4), (1, "4", 4)])
def test_what_is_nearly_a_rotary_embedding(preset: type[omb.Preset], cut: int, columns: str, given: int) -> None:
    x, c, s = floats(1, 2, 3, 4), floats(1, 1, 3, 4), floats(1, 1, 3, given)
    turned = np.concatenate([-x[..., cut:], x[..., :cut]], axis=-1)
    found = preset.prepare(_rotary(cut, columns), fallback="full").run([x, c, s])[0]
    np.testing.assert_allclose(found, x * c + turned * s, rtol=1e-5, atol=1e-6)


#: What turns x into r, and numpy's form of that.
TURNINGS = {
    "parts of a Split that stay": (
        "p, q = Split <axis = 3> (x, half) n = Neg (p) r = Concat <axis = -1> (n, q)",
        lambda p, q: (-p, q),
    ),
    "unequal parts of a Split": ("q, p = Split <axis = 3> (x, odd) n = Neg (p) r = Concat <axis = -1> (n, q)", None),
    "slices that stay": (
        "p = Slice (x, zero, two, axis) q = Slice (x, two, end, axis) n = Neg (p) r = Concat <axis = -1> (n, q)",
        lambda p, q: (-p, q),
    ),
    "a product with -1, of other bounds": (
        "q = Slice (x, zero, one, axis) p = Slice (x, one, end, axis) n = Mul (p, minus) r = Concat <axis = -1> (n, q)",
        None,
    ),
    "a rotary embedding": (
        "p = Slice (x, zero, two, axis) q = Slice (x, two, end, axis) n = Neg (q) r = Concat <axis = -1> (n, p)",
        lambda p, q: (-q, p),
    ),
}


@pytest.mark.parametrize("rows", ["3", "1", "m"])
@pytest.mark.parametrize("form", TURNINGS)
def test_parts_that_change_places_otherwise(preset: type[omb.Preset], form: str, rows: str) -> None:
    nodes, turned = TURNINGS[form]
    model = parsed(
        f"""(float[1, 2, {rows}, 4] x, float[1, 1, 3, 4] c, float[1, 1, 3, 4] s) => (float[e, f, g, h] y) <int64[2] half = {{2, 2}}, int64[2] odd = {{1, 3}},
        int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] end = {{99}}, int64[1] axis = {{3}}, float minus = {{-1}}> {{
        {nodes} a = Mul (x, c) b = Mul (r, s) y = Add (a, b) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    c, s = floats(1, 1, 3, 4), floats(1, 1, 3, 4) + 1
    for count in [3] if rows == "m" else [int(rows)]:
        x = floats(1, 2, count, 4)
        parts = turned(x[..., :2], x[..., 2:]) if turned else (-x[..., 1:], x[..., :1])
        expected = x * c + np.concatenate(parts, axis=-1) * s
        np.testing.assert_allclose(prepared.run([x, c, s])[0], expected, rtol=1e-5, atol=1e-6, strict=True)


def test_a_rotary_embedding_stays(openvino: type[omb.Preset]) -> None:
    assert not openvino.prepare(_rotary(2, "4")).adaptations
    assert not openvino.prepare(_rotary(2, "4", "b, n, 3, 4")).adaptations


#: Functions of x that are written with a constant k which has more axes.
FUNCTIONS = {
    "Swish": (
        "float[1, 1, 1] k = {1.5}",
        "a = Mul (x, k) b = Sigmoid (a) y = Mul (x, b)",
        lambda x: x / (1 + np.exp(-1.5 * x)),
    ),
    "HardSwish": (
        "float[1, 1, 1] k = {3}, float zero = {0}, float six = {6}",
        "a = Add (x, k) b = Max (a, zero) c = Min (b, six) d = Div (c, six) y = Mul (x, d)",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    "GELU": (
        "float root = {1.4142135}, float one = {1}, float[1, 1, 1] k = {0.5}",
        "a = Div (x, root) b = Erf (a) c = Add (b, one) d = Mul (k, x) y = Mul (d, c)",
        lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    ),
}


@pytest.mark.parametrize("sizes", ["2, 2", "n, m"])
@pytest.mark.parametrize("form", FUNCTIONS)
def test_a_function_with_more_axes(preset: type[omb.Preset], form: str, sizes: str) -> None:
    constants, nodes, function = FUNCTIONS[form]
    x = floats(2, 2)
    found = preset.prepare(
        parsed(f"(float[{sizes}] x) => (float[1, {sizes}] y) <{constants}> {{ {nodes} }}"), fallback="full"
    ).run([x])[0]
    np.testing.assert_allclose(found, function(x)[None], rtol=1e-4, atol=1e-5)
    assert found.shape == (1, 2, 2)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_softmax_whose_sum_loses_its_axis(preset: type[omb.Preset], kept: int) -> None:
    model = parsed(
        f"""(float[4, 4] x) => (float[4, 4] y) <int64[1] axis = {{1}}> {{ m = ReduceMax <axes = [1], keepdims = {kept}> (x) c = Sub (x, m) e = Exp (c)
        q = ReduceSum <keepdims = 0> (e, axis) y = Div (e, q) }}"""
    )
    x = floats(4, 4)
    e = np.exp(x - x.max(1, keepdims=bool(kept)))
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, e / e.sum(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", ["n, 3", "n, c, h, w"])
@pytest.mark.parametrize("operator", ["Sigmoid", "Neg", "Identity"])
@pytest.mark.parametrize("slopes", ["alike", "broadcast"])
def test_slopes_that_another_node_makes(preset: type[omb.Preset], sizes: str, operator: str, slopes: str) -> None:
    """In open sizes OpenVINO gave the slopes."""
    given = sizes if slopes == "alike" else {"n, 3": "1, 3", "n, c, h, w": "c, 1, 1"}[sizes]
    model = parsed(
        f"(float[{sizes}] x, float[{given}] k) => (float[{sizes}] y) {{ s = {operator} (k) y = PRelu (x, s) }}"
    )
    numbers = {"n": 2, "c": 3, "h": 4, "w": 5}
    x, k = (floats(*(numbers.get(d) or int(d) for d in text.split(", "))) for text in (sizes, given))
    s = {"Sigmoid": 1 / (1 + np.exp(-k)), "Neg": -k, "Identity": k}[operator]
    found = preset.prepare(model, fallback="full").run([x, k])[0]
    np.testing.assert_allclose(found, np.where(x < 0, s * x, x), rtol=1e-5, atol=1e-6)


def test_a_mean_that_is_computed_twice(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[3, 3] x) => (float[3, 3] y) <float eps = {0.1}> { m = ReduceMean <axes = [1]> (x) c = Sub (x, m) n = ReduceMean <axes = [1]> (x)
        d = Sub (x, n) q = Mul (d, d) v = ReduceMean <axes = [1], keepdims = 0> (q) s = Sqrt (v) t = Add (s, eps) y = Div (c, t) }"""
    )
    x = floats(3, 3)
    c = x - x.mean(1, keepdims=True)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, c / (np.sqrt((c * c).mean(1)) + np.float32(0.1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", ["a, b, c", "1, 1, 3"])
@pytest.mark.parametrize("shape", ["0, 0, 0", "-1, 1, 3"])
def test_an_expand_that_gives_axes_alone(preset: type[omb.Preset], shape: str, sizes: str) -> None:
    """Behind a Reshape OpenVINO left it out."""
    model = parsed(
        f"""(float[{sizes}] x) => (float[1, d, e, f] y) <int64[3] z = {{{shape}}}, int64[4] o = {{1, 1, 1, 1}}> {{
        r = Reshape (x, z) t = Expand (r, o) y = Identity (t) }}"""
    )
    x = floats(1, 1, 3)
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run([x])[0], x[None], strict=True)


def test_parts_of_a_slice_of_no_rows(openvino: type[omb.Preset]) -> None:
    """The process ended while OpenVINO compiled it."""
    model = parsed(
        """(float[4, 4, 4, 4] x) => (float[a, b, c, d] y) <int64[1] s = {-1}, int64[1] e = {3}, int64[1] axis = {0}, int64[2] two = {2, 2}, float zero = {0},
        float[1] one = {1}> { t = Transpose <perm = [1, 2, 3, 0]> (x) u = Slice (t, s, e, axis) p, q = Split <axis = 2> (u, two) v = Concat <axis = 2> (q, p)
        g = Greater (v, zero) h = Where (g, v, one) y = Transpose <perm = [3, 0, 1, 2]> (h) }"""
    )
    assert openvino.prepare(model).run([floats(4, 4, 4, 4)])[0].shape == (4, 0, 4, 4)
