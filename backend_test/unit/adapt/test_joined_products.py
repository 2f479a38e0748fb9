# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions that engines join with what stands before or behind them."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed
from onnx_multi_backend.models.contents import Contents

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


#: A matrix that is turned before its product with a vector, and the sizes of x.
TURNED = {
    "a matrix": ("t = Transpose (x) y = MatMul (t, v)", (3, 3)),
    "matrices": ("t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (t, v)", (2, 3, 3)),
    "a matrix that is cast": ("t = Transpose (x) c = Cast <to = 1> (t) y = MatMul (c, v)", (3, 3)),
}


@pytest.mark.parametrize("vector", ["input", "constant", "computed"])
@pytest.mark.parametrize("form", TURNED)
def test_a_turned_matrix_by_a_vector(preset: type[omb.Preset], form: str, vector: str) -> None:
    """ONNX Runtime left out that it is turned."""
    nodes, sizes = TURNED[form]
    nodes = nodes.replace("v)", {"input": "u)", "constant": "k)", "computed": "v)"}[vector])
    model = parsed(
        f"""(float[{", ".join("abc"[: len(sizes)])}] x, float[3] u) => (float[{", ".join("efg"[: len(sizes) - 1])}] y, float[3] v)
        <float[3] k = {{1, 10, 100}}> {{ v = Abs (u) {nodes} }}"""
    )
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    found = preset.prepare(model, fallback="full").run([x, np.float32([1, 10, 100])])[0]
    np.testing.assert_allclose(found, np.swapaxes(x, -1, -2) @ np.float32([1, 10, 100]), rtol=1e-6)


def test_optimizers_see_what_they_get_right() -> None:
    from onnx_multi_backend.engines.ort.optimizers.harmful import harmful_optimizers

    for text in (
        "(float[a, 3] x, float[3, b] u) => (float[c, d] y) { t = Transpose <perm = [1, 0]> (x) y = MatMul (t, u) }",
        "(float[3, b] x, float[3] u) => (float[c] y) { t = Transpose <perm = [0, 1]> (x) y = MatMul (u, t) }",
    ):
        assert not harmful_optimizers(Contents(parsed(text)))


@pytest.mark.parametrize("sizes", ["1, 2, 4, 4", "n, 2, h, w"])
def test_a_pad_before_a_transposed_convolution(preset: type[omb.Preset], sizes: str) -> None:
    """OpenVINO took it for padding of the result."""
    model = parsed(
        f"""(float[{sizes}] x) => (float[n, c, h, w] y) <int64[8] p = {{0, 0, 1, 1, 0, 0, 1, 1}}, float[2, 1, 2, 2] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
        t = Pad (x, p) y = ConvTranspose <kernel_shape = [2, 2], pads = [1, 1, 1, 1], strides = [2, 2]> (t, w) }}"""
    )
    x = floats(1, 2, 4, 4)
    padded, w = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2)
    expected = np.zeros((12, 12), np.float32)
    for i in range(6):
        for j in range(6):
            expected[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += np.einsum("c,chw->hw", padded[0, :, i, j], w)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found[0, 0], expected[1:-1, 1:-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", ["c, d", "d, c", "c, c"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sizes", ["1, 2, 2, 2", "n, c, h, w"])
def test_convolutions_of_parts_that_are_put_together(
    preset: type[omb.Preset], sizes: str, axis: int, order: str
) -> None:
    """OpenVINO made one of groups of them, whatever the axis and the order."""
    model = parsed(
        f"""(float[{sizes}] x) => (float[p, q, r, s] y) <int64[2] t = {{1, 1}}, float[1, 1, 1, 1] v = {{2}}, float[1, 1, 1, 1] w = {{3}}> {{
        a, b = Split <axis = 1> (x, t) c = Conv (a, v) d = Conv (b, w) y = Concat <axis = {axis}> ({order}) }}"""
    )
    x = floats(1, 2, 2, 2)
    convolved = {"c": 2 * x[:, :1], "d": 3 * x[:, 1:]}
    expected = np.concatenate([convolved[name] for name in order.split(", ")], axis=axis)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], expected, rtol=1e-5)


#: Products of at most two rows and columns, and the sizes of what is multiplied.
SMALL = {
    "a matrix": ("y = MatMul (x, w)", (1, 2), (2, 2)),
    "matrices": ("y = MatMul (x, w)", (2, 2, 1), (2, 1, 2)),
    "a Gemm": ("y = Gemm <transA = 1, alpha = 2.0> (x, w)", (2, 1), (2, 2)),
}


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("form", SMALL)
def test_small_products_on_a_processor_without_avx(
    openvino: type[omb.Preset], form: str, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenVINO's kernel there has the second column wrong; on any other processor it is told apart alone."""
    from onnx_multi_backend.engines.across_nodes import small_products

    monkeypatch.setattr(small_products, "processor_has", lambda _: False)
    nodes, *sizes = SMALL[form]
    declared = [
        ", ".join(f"{letter}{i}" if opened else str(n) for i, n in enumerate(of))
        for letter, of in zip("ab", sizes, strict=True)
    ]
    made = ", ".join("efg"[: len(sizes[0])])
    model = parsed(f"(float[{declared[0]}] x, float[{declared[1]}] w) => (float[{made}] y) {{ {nodes} }}")
    x, w = (10.0 ** np.arange(np.prod(of), dtype=np.float32).reshape(of) for of in sizes)
    prepared = openvino.prepare(model)
    assert [a.pass_name for a in prepared.adaptations] == ["products_turned"]
    right = 2 * (x.T @ w) if "Gemm" in nodes else x @ w
    np.testing.assert_allclose(prepared.run([x, w])[0], right, rtol=1e-6)
