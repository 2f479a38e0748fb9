# SPDX-License-Identifier: Apache-2.0
"""GridSample beside images, Det, MaxPool that rounds up, and Mod by an infinite number."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, expected, rewritten

pytest.importorskip("onnxruntime")


def sampling(x: np.ndarray, grid: np.ndarray, **attributes: Any) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [models.tensor("x", [None, *x.shape[1:]], kind), models.tensor("g", [None] * grid.ndim)]
    return models.one_node("GridSample", inputs, [models.tensor("y", [None] * x.ndim, kind)], opset=22, **attributes)


@settings(max_examples=25, deadline=None)
@given(
    axes=st.integers(1, 3),
    mode=st.sampled_from(["linear", "nearest"]),
    padding=st.sampled_from(["zeros", "border", "reflection"]),
    aligned=st.integers(0, 1),
    dtype=st.sampled_from([np.float32, np.float16, np.int32]),
    seed=st.integers(0, 99),
)
def test_samples(axes: int, mode: str, padding: str, aligned: int, dtype: Any, seed: int) -> None:
    dtype = np.float32 if mode == "linear" and dtype is np.int32 else dtype
    rng = np.random.default_rng(seed)
    x = rng.integers(-50, 50, (2, 2, *rng.integers(2, 5, axes))).astype(dtype)
    grid = rng.uniform(-3, 3, (2, *rng.integers(1, 4, axes), axes)).astype(np.float32)
    model = sampling(x, grid, mode=mode, padding_mode=padding, align_corners=aligned)
    new, changes = rewritten(model, "GridSample")
    assert [c.pass_name for c in changes] == ["grid_sample"]
    loose = 0.1 if dtype is np.float16 else 1e-3
    np.testing.assert_allclose(computed(new, x, grid)[0], expected(model, x, grid)[0], rtol=1e-3, atol=loose)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("axes", [1, 3])
def test_samples_on_openvino(openvino: type[omb.Preset], axes: int, mode: str, padding: str) -> None:
    rng = np.random.default_rng(axes)
    x = rng.normal(size=(2, 3, 3, 4, 5)[: axes + 2]).astype(np.float32)
    grid = rng.uniform(-2, 2, (2, 2, 3, 2)[: axes + 1] + (axes,)).astype(np.float32)
    model = sampling(x, grid, mode=mode, padding_mode=padding)
    prepared = openvino.prepare(model)
    for places in (grid, -grid):
        np.testing.assert_allclose(prepared.run([x, places])[0], expected(model, x, places)[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_no_numbers_read_nothing_else(openvino: type[omb.Preset], padding: str) -> None:
    """An index made of NaN or an infinity would be read wherever it leads."""
    x = np.ones((1, 1, 2, 3, 4), np.float32)
    prepared = openvino.prepare(sampling(x, np.zeros((1, 1, 1, 1, 3)), mode="nearest", padding_mode=padding))
    for value in (np.nan, np.inf, -np.inf, 1e30):
        result = prepared.run([x, np.full((1, 2, 2, 2, 3), value, np.float32)])[0]
        assert set(result.ravel()) <= {0.0, 1.0}


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("batch", [(), (4,), (0,), (2, 3)])
def test_determinants(rows: int, batch: tuple[int, ...]) -> None:
    x = np.random.default_rng(rows).normal(size=(*batch, rows, rows)).astype(np.float32)
    shape = [*(f"n{i}" for i in range(len(batch))), rows, rows]
    model = models.one_node("Det", [models.tensor("x", shape)], [models.tensor("y", None)], opset=22)
    new, changes = rewritten(model, "Det")
    assert [c.pass_name for c in changes] == ["det"]
    for value in (x, x[::-1] * 2 if batch else x * 2):
        np.testing.assert_allclose(computed(new, value)[0], np.linalg.det(value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("size", "kernel", "stride", "pads"), [(4, 1, 2, 0), (3, 2, 3, 1), (2, 1, 2, 0), (7, 3, 3, 1)])
@pytest.mark.parametrize("indices", [False, True])
def test_windows_beyond_the_image(size: int, kernel: int, stride: int, pads: int, indices: bool) -> None:
    pytest.importorskip("openvino")
    x = np.random.default_rng(size).normal(size=(1, 2, size, size + 1)).astype(np.float32)
    form = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pads] * 4, "ceil_mode": 1}
    outputs = [models.tensor("y", None), models.tensor("i", None, models.INT64)][: 1 + indices]
    model = models.one_node("MaxPool", [models.tensor("x", x.shape)], outputs, opset=22, **form)
    right = expected(model, x)[: 1 + indices]
    new, changes = rewritten(model, "MaxPool", forms=lambda site: bool(site.attribute("ceil_mode", 0)))
    assert [c.pass_name for c in changes] == ["pool_ceil"]
    for results in (computed(new, x), omb.OpenvinoBackend.prepare(model).run([x])):
        for one, other in zip(results, right, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("counted", [False, True])
def test_shape_does_not_tell_windows_that_are_left_out(preset: type[omb.Preset], operator: str, counted: bool) -> None:
    """ONNX Runtime computed it from what onnx infers, one more below opset 22."""
    if counted and operator != "AveragePool":
        pytest.skip("has no count_include_pad")
    more = ", count_include_pad = 1" if counted else ""
    for size, kernel, stride, pads in ((4, 2, 2, (0, 1)), (4, 2, 2, (1, 1)), (5, 1, 3, (0, 0)), (5, 3, 3, (1, 2))):
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 19]> g (float[1, 2, {size}] x) => (float[1, 2, k] y, int64[3] s) {{
            y = {operator} <kernel_shape = [{kernel}], strides = [{stride}], pads = [{pads[0]}, {pads[1]}], ceil_mode = 1{more}> (x) s = Shape (y) }}"""
        )
        x = np.random.default_rng(size).normal(size=(1, 2, size)).astype(np.float32)
        y, s = preset.prepare(model, fallback="full").run([x])
        np.testing.assert_allclose(y, expected(model, x)[0], rtol=1e-5, atol=1e-6)
        assert list(s) == list(y.shape)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_batch_of_0_has_no_windows_that_are_left_out(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 21]> g (float[n, 2, 4] x) => (float[n, 2, m] y) {
        y = AveragePool <kernel_shape = [2], strides = [2], pads = [0, 1], ceil_mode = 1> (x) }"""
    )
    try:
        found = preset.prepare(model, fallback="full").run([np.ones((0, 2, 4), np.float32)])[0]
    except omb.RunError:
        return  # OpenVINO has no such pools
    assert found.shape == (0, 2, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_rest_of_an_infinite_divisor(openvino: type[omb.Preset], dtype: Any) -> None:
    values = np.array([-np.inf, -3, -0.0, 0.0, 2, np.inf, np.nan], dtype)
    a, b = (m.ravel() for m in np.meshgrid(values, np.array([-np.inf, -2, 2, np.inf], dtype)))
    kind = helper.np_dtype_to_tensor_dtype(a.dtype)
    inputs = [models.tensor("a", [None], kind), models.tensor("b", [None], kind)]
    model = models.one_node("Mod", inputs, [models.tensor("c", [None], kind)], opset=28, fmod=0, ir_version=13)
    prepared = openvino.prepare(model)
    with np.errstate(all="ignore"):
        for one, other in ((a, b), (a[::-1].copy(), b[::-1].copy())):
            np.testing.assert_array_equal(prepared.run([one, other])[0], np.mod(one, other))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("fmod", [0, 1])
def test_a_remainder_is_exact(dtype: type, fmod: int, openvino: type[omb.Preset]) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [models.tensor("a", ["n"], kind), models.tensor("b", ["n"], kind)]
    model = models.one_node("Mod", inputs, [models.tensor("c", ["n"], kind)], opset=28, fmod=fmod, ir_version=13)
    prepared = openvino.prepare(model)
    generator, count = np.random.default_rng(7), 20000
    lowest, highest, furthest = (-100, 60, 43.5) if dtype is np.float32 else (-12, 4, 11.5)
    for near in (1.0, furthest / 2, furthest):  # how large quotients are
        b = np.exp2(generator.uniform(lowest, highest, count)) * generator.choice([-1, 1], count)
        times = np.exp2(generator.uniform(-2, near, count)) * generator.choice([-1, 1], count)
        whole = generator.random(count) < 0.3
        a = (b.astype(dtype) * np.where(whole, np.rint(times), times)).astype(dtype)
        b = b.astype(dtype)
        np.testing.assert_array_equal(prepared.run([a, b])[0], np.fmod(a, b) if fmod else np.mod(a, b))
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5.5, -2, 3], dtype)
    a, b = (m.ravel() for m in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        right = np.fmod(a, b)
    if fmod:
        found = prepared.run([a, b])[0]
        np.testing.assert_array_equal(found, right)
        np.testing.assert_array_equal(np.signbit(found[right == 0]), np.signbit(right[right == 0]))
