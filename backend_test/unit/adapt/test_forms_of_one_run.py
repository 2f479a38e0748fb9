# SPDX-License-Identifier: Apache-2.0
"""Forms that depend on what only a run tells: a value to pad with, axes that are none, the size of what is pooled."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_second_runs import Form

X = np.random.default_rng(17).normal(size=(2, 3)).astype(np.float32)
IMAGE = np.random.default_rng(18).permutation(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype(np.float32)


def padded(x: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.pad(x, ((1, 0), (0, 2)), constant_values=value.item())


def columns_first(x: np.ndarray) -> np.ndarray:
    """Where the greatest of each 2 by 2 elements is, counted down the columns."""
    batch, channels, height, width = x.shape
    found = np.empty((batch, channels, height - 1, width - 1), np.int64)
    for n, c, i, j in itertools.product(*map(range, found.shape)):
        down, right = divmod(int(x[n, c, i : i + 2, j : j + 2].argmax()), 2)
        found[n, c, i, j] = (n * channels + c) * height * width + (j + right) * height + i + down
    return found


FORMS: dict[str, Form] = {
    **{
        f"Pad of {kind} with a value known at run time, {shape}": Form(
            f"({kind}[{shape}] x, {kind}{value} v) => ({kind}[c, d] y) {{ y = Pad (x, p, v) }}",
            [[(X * 9).astype(dtype), np.array(of, dtype).reshape((1,) if value else ())] for of in (3, 0, 1)],
            padded,
            weights={"p": np.array([1, 0, 0, 2])},
        )
        for kind, dtype in (("float", np.float32), ("float16", np.float16), ("int8", np.int8), ("bool", np.bool_))
        for shape, value in (("2, 3", ""), ("a, b", ""), ("2, 3", "[1]"))
    },
    "Pad with an infinite value": Form(
        "(float[2, 3] x, float v) => (float[c, d] y) { y = Pad (x, p, v) }",
        [[np.float32([[np.inf, 1, 2], [3, -np.inf, 4]]), np.float32(of)] for of in (-np.inf, 5)],
        padded,
        weights={"p": np.array([1, 0, 0, 2])},
    ),
    "Pad as far as it is long": Form(
        "(float[2, 3] x, float v) => (float[c, d] y) { s = Shape (x) p = Concat <axis = 0> (s, s) y = Pad (x, p, v) }",
        [[X, np.float32(of)] for of in (-2.5, 4)],
        lambda x, v: np.pad(x, ((2, 2), (3, 3)), constant_values=v),
    ),
    **{
        f"{name} of axes that are none, keepdims = {keep}": Form(
            f"""(float[a, b] x, int64[0] axes) => (float[a, b] y) {{
            y = {name} <noop_with_empty_axes = 1, keepdims = {keep}> (x, axes) }}""",
            [[x, np.zeros(0, np.int64)] for x in (X, X[:1].copy(), X)],
            right,
        )
        for name, right in (
            ("ReduceL1", lambda x, axes: np.abs(x)),
            ("ReduceL2", lambda x, axes: np.abs(x)),
            ("ReduceSumSquare", lambda x, axes: np.square(x)),
            ("ReduceLogSumExp", lambda x, axes: x),
        )
        for keep in (0, 1)
    },
    "ReduceLogSum of axes that are none": Form(
        "(float[a, b] x, int64[0] axes) => (float[a, b] y) { y = ReduceLogSum <noop_with_empty_axes = 1> (x, axes) }",
        [[abs(x), np.zeros(0, np.int64)] for x in (X, X[:1])],
        lambda x, axes: np.log(x),
    ),
    **{
        f"places counted down the columns of {kind} {shape}": Form(
            f"""({kind}[{shape}] x) => (int64[a, b, g, h] i) {{
            y, i = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x) }}""",
            [[x.astype(dtype)] for x in images],
            columns_first,
        )
        for kind, dtype in (("float", np.float32), ("uint8", np.uint8))
        for shape, images in (
            ("2, 3, 4, 5", [IMAGE, IMAGE[::-1]]),
            ("a, b, c, d", [IMAGE, IMAGE[:1, :, :3], IMAGE]),
        )
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_only_a_run_decides(preset: type[omb.Preset], form: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = preset.prepare(FORMS[form].model(), fallback="full")
    for values in FORMS[form].runs:
        right: Any = FORMS[form].right(*values)
        got = prepared.run([*values, np.ones(1, np.float32)])[0]
        assert got.shape == right.shape
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6 if got.dtype.kind == "f" else 0)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("shape", ["1, 3, 6", "a, b, c"])
def test_a_pool_without_padding_that_rounds_its_size_up(preset: type[omb.Preset], operator: str, shape: str) -> None:
    """Its last window would start beyond the image."""
    form = Form(
        f"""(float[{shape}] x) => (float[d, e, f] y) {{
        y = {operator} <auto_pad = "VALID", ceil_mode = 1, kernel_shape = [1], strides = [3]> (x) }}""",
        [],
        lambda x: x[..., ::3],
        19,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = preset.prepare(form.model(), fallback="full")
    for width in (6, 6) if "6" in shape else (6, 7, 6):
        x = np.arange(3 * width, dtype=np.float32).reshape(1, 3, width)
        np.testing.assert_array_equal(prepared.run([x, np.ones(1, np.float32)])[0], x[..., ::3])


def test_a_product_of_integer_matrices_without_elements_is_refused_or_right(preset: type[omb.Preset]) -> None:
    """What a rule wrote for it ended OpenVINO's process."""
    form = Form("(int32[3, 0] a, int32[0, 5] b) => (int32[3, 5] y) { y = MatMul (a, b) }", [], np.matmul)
    given = [np.zeros((3, 0), np.int32), np.zeros((0, 5), np.int32), np.ones(1, np.float32)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = preset.prepare(form.model(), fallback="full").run(given)[0]
        except omb.UnsupportedModelError:
            assert preset.name == "Openvino"
            return
    np.testing.assert_array_equal(result, np.zeros((3, 5), np.int32))
