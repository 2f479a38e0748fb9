# SPDX-License-Identifier: Apache-2.0
"""Patterns that optimizers of ONNX Runtime take for others: reciprocals, ranges and normalized products."""

from __future__ import annotations

import warnings

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed
from onnx_multi_backend.models.contents import Contents

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("one", ["constant", "computed"])
def test_a_product_with_the_reciprocal_of_an_integer(preset: type[omb.Preset], kind: str, one: str) -> None:
    """ONNX Runtime divided: 7 / 5 for 7 * (1 / 5)."""
    cast = "" if one == "constant" else f"k = Cast <to = {onnx.TensorProto.DataType.Value(kind.upper())}> (f)"
    held = f"{kind} k = {{1}}" if one == "constant" else "float f = {1}"
    model = parsed(f"({kind}[3] x, {kind}[3] z) => ({kind}[3] y) <{held}> {{ {cast} d = Div (k, z) y = Mul (x, d) }}")
    found = preset.prepare(model, fallback="full").run([np.array([7, 6, 5], kind), np.array([5, 1, -1], kind)])[0]
    assert found.tolist() == [0, 6, -5]


def test_the_reciprocal_has_more_axes(preset: type[omb.Preset]) -> None:
    """ONNX Runtime lost those of its 1."""
    model = parsed(
        "(float[2, 3] x, float[2, 3] z) => (float[1, 2, 3] y) <float[1, 1, 1] k = {1}> { d = Div (k, z) y = Mul (x, d) }"
    )
    x, z = floats(2, 3), np.abs(floats(2, 3)) + 1
    found = preset.prepare(model, fallback="full").run([x, z])[0]
    np.testing.assert_allclose(found, (x / z)[None], rtol=1e-5, strict=True)


#: Which rows of x are taken by a Range, of as many as k says, n being how many there are.
RANGES = {
    "from the last to the first": ("first = Sub (n, one) i = Range (first, minus, minus)", lambda x, k: x[::-1]),
    "the last ones": ("below = Neg (k) i = Range (below, zero, one)", lambda x, k: x[-k:]),
    "the first ones": ("i = Range (zero, k, one)", lambda x, k: x[:k]),
    "all": ("i = Range (zero, n, one)", lambda x, k: x),
    "the last ones, behind an Identity": (
        "below = Neg (k) j = Range (below, zero, one) i = Identity (j)",
        lambda x, k: x[-k:],
    ),
    "none": ("end = Sub (zero, k) i = Range (zero, end, one)", lambda x, k: x[:0]),
}


@pytest.mark.parametrize("form", RANGES)
def test_rows_by_a_range(preset: type[omb.Preset], form: str) -> None:
    """ONNX Runtime made a Slice of them, whose bounds count from the end where they are negative."""
    nodes, taken = RANGES[form]
    model = parsed(
        f"""(float[m, 3] x, int64 k) => (float[r, 3] y) <int64 zero = {{0}}, int64 one = {{1}}, int64 minus = {{-1}}> {{
        r = Relu (x) s = Shape (r) n = Gather (s, zero) {nodes} y = Gather (r, i) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for k in (2, 3):
        np.testing.assert_array_equal(prepared.run([x, np.array(k)])[0], taken(x, k))


@pytest.mark.parametrize(
    ("moved", "sizes"),
    [
        ("t = Transpose <perm = [1, 0]> (p)", (3, 3)),
        ("t = Reshape (p, r)", (2, 3, 2)),
        ("u = Reshape (p, r) t = Transpose <perm = [2, 1, 0]> (u)", (2, 3, 2)),
    ],
)
def test_a_normalization_of_a_product_that_is_moved(
    preset: type[omb.Preset], moved: str, sizes: tuple[int, ...]
) -> None:
    """ONNX Runtime 1.24 took its factors into the columns of the matrix, which are other channels then."""
    rows = int(np.prod(sizes)) // 3
    shape = ", ".join(map(str, sizes))
    made = ", ".join("defg"[: len(sizes)])
    model = parsed(
        f"""(float[{rows}, 2] x) => (float[{made}] y) <float[2, 3] w = {{1, 2, 3, 4, 5, 6}}, int64[{len(sizes)}] r = {{{shape}}},
        float[3] s = {{1, 10, 100}}, float[3] b = {{1, 2, 3}}, float[3] m = {{3, 2, 1}}, float[3] v = {{1, 4, 9}}> {{
        p = MatMul (x, w) {moved} y = BatchNormalization <epsilon = 0.0> (t, s, b, m, v) }}"""
    )
    x = floats(rows, 2)
    t = (x @ np.float32([[1, 2, 3], [4, 5, 6]])).reshape(sizes)
    t = t.transpose() if "Transpose" in moved else t
    axes = (1, -1, *[1] * (t.ndim - 2))
    scale, bias, mean, deviation = (
        np.float32(v).reshape(axes) for v in ([1, 10, 100], [1, 2, 3], [3, 2, 1], [1, 2, 3])
    )
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, (t - mean) / deviation * scale + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("nodes", ["y = MatMul (x, t)", "n = Neg (t) u = MatMul (x, n) y = Exp (u)"])
def test_products_by_a_turned_matrix(preset: type[omb.Preset], kind: str, nodes: str) -> None:
    """ONNX Runtime 1.24 has no kernel of float64 for what its optimizer makes of both: it refused the model."""
    model = parsed(
        f"({kind}[2, 3] x, {kind}[4, 3] w) => ({kind}[a, b] y) {{ t = Transpose <perm = [1, 0]> (w) {nodes} }}"
    )
    x, w = (floats(*sizes).astype(kind if kind == "double" else "float32") for sizes in ((2, 3), (4, 3)))
    right = np.exp(-x @ w.T) if "Exp" in nodes else x @ w.T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.PrecisionWarning)
        found = preset.prepare(model, fallback="full").run([x, w])[0]
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_optimizers_see_what_they_get_right() -> None:
    from onnx_multi_backend.engines.ort.optimizers.harmful import harmful_optimizers

    for text in (
        "(float[3] x, float[3] z) => (float[3] y) <float k = {1}> { d = Div (k, z) y = Mul (x, d) }",
        """(float[m, 3] x) => (float[r, 3] y) <int64 zero = {0}, int64 one = {1}> {
        s = Shape (x) n = Gather (s, zero) e = Add (n, one) i = Range (zero, n, one) y = Gather (x, i) }""",
    ):
        assert not harmful_optimizers(Contents(parsed(text)))
