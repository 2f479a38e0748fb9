# SPDX-License-Identifier: Apache-2.0
"""Pad that crops more than there is, which OpenVINO dies of: what the other end is padded with is cropped then."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


def _padded(x: np.ndarray, pads: list[int], value: float) -> np.ndarray:
    """Padded first, and cropped behind that."""
    first, last = np.array(pads).reshape(2, -1)
    grown = np.pad(x, list(zip(first.clip(0), last.clip(0), strict=True)), constant_values=value)
    return grown[
        tuple(slice(max(-b, 0), size + min(e, 0)) for b, e, size in zip(first, last, grown.shape, strict=True))
    ]


PADS = [[0, -4, 0, 2], [0, 2, 0, -4], [-3, 0, 1, 0], [0, -3, 0, 0], [-2, -1, 0, 1], [1, 1, 1, 1], [-1, 0, 0, -1]]


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("sizes", ["2, 3", "n, m"])
@pytest.mark.parametrize("kind", ["float", "int32", "bool"])
def test_pads_that_are_an_input(preset: type[omb.Preset], sizes: str, kind: str) -> None:
    dtype = {"float": np.float32, "bool": np.bool_}.get(kind, np.int32)
    model = parsed(
        f"({kind}[{sizes}] x, int64[4] pads, {kind} value) => ({kind}[a, b] y) {{ y = Pad (x, pads, value) }}", 19
    )
    prepared = preset.prepare(model, fallback="full")
    x, value = X.astype(dtype), np.array(7).astype(dtype)
    for pads in PADS:
        np.testing.assert_array_equal(prepared.run([x, np.array(pads), value])[0], _padded(x, pads, value))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("pads", PADS, ids=str)
def test_pads_that_are_constants(preset: type[omb.Preset], pads: list[int]) -> None:
    listed = ", ".join(map(str, pads))
    model = parsed(
        f"(float[2, 3] x) => (float[a, b] y) <int64[4] p = {{{listed}}}> {{ v = Neg (x) y = Pad (v, p) }}", 13
    )
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run(X)[0], _padded(-X, pads, 0))


@pytest.mark.parametrize("pads", [[4, 0, -5, 0], [0, 4, 0, -4], [-3, 0, 4, 0]], ids=str)
@pytest.mark.parametrize("written", ["value = int64[4] {%s}", "value_ints = [%s]"])
def test_open_sizes(openvino: type[omb.Preset], pads: list[int], written: str) -> None:
    listed = ", ".join(map(str, pads))
    model = parsed(
        f"(float[n, m] x) => (float[a, b] y) {{ p = Constant <{written.replace('%s', listed)}> () y = Pad (x, p) }}", 13
    )
    prepared = openvino.prepare(model)
    for x in (X, X[:, :1], X[:1]):
        if min(x.shape[i] + pads[i] + pads[i + 2] for i in (0, 1)) >= 0:
            np.testing.assert_array_equal(prepared.run(x)[0], _padded(x, pads, 0))


def test_axes(openvino: type[omb.Preset]) -> None:
    model = parsed(
        "(float[n, m] x) => (float[a, b] y) <int64[1] axes = {1}, int64[2] p = {4, -5}, float v = {2}> { y = Pad (x, p, v, axes) }",
        18,
    )
    np.testing.assert_array_equal(openvino.prepare(model).run(X)[0], _padded(X, [0, 4, 0, -5], 2))


@pytest.mark.parametrize(
    ("given", "nodes"),
    [
        ("float[a, b, c] x, int64[4] p, int64[1] axis", "s = Squeeze (x, axis) y = Pad (s, p)"),
        ("float[a, b, c] x, int64[k] p, int64[1] axis", "s = Squeeze (x, axis) y = Pad (s, p)"),
    ],
)
def test_an_unknown_rank_is_left_as_it_is(openvino: type[omb.Preset], given: str, nodes: str) -> None:
    prepared = openvino.prepare(parsed(f"({given}) => (float[d, e] y) {{ {nodes} }}", 18))
    x, pads = np.ones((2, 1, 3), np.float32), [0, 1, 1, 0]
    np.testing.assert_array_equal(prepared.run([x, np.array(pads), np.array([1])])[0], _padded(x[:, 0], pads, 0))


def test_computed_pads_stay_as_they_are(openvino: type[omb.Preset]) -> None:
    """Exporters write them for constants."""
    model = parsed(
        "(float[n, 3] x) => (float[a, b] y) <int64[2, 2] p = {0, 1, 0, 1}, int64[1] all = {-1}> { f = Reshape (p, all) y = Pad (x, f) }",
        13,
    )
    assert openvino.prepare(model).adaptations == ()


@pytest.mark.parametrize("opset", [7, 9, 10])
@pytest.mark.parametrize("pads", [[4, 0, -5, 0], [0, 4, 0, -4], [-3, 0, 4, 0], [2, -1, -1, 3]], ids=str)
def test_pads_that_are_an_attribute(openvino: type[omb.Preset], opset: int, pads: list[int]) -> None:
    model = parsed(f"(float[n, m] x) => (float[a, b] y) {{ y = Pad <pads = {pads}, value = 2.5> (x) }}", opset)
    prepared = openvino.prepare(model)
    for x in (X, X[:, :1], X[:1]):
        if min(x.shape[i] + pads[i] + pads[i + 2] for i in (0, 1)) >= 0:
            np.testing.assert_array_equal(prepared.run(x)[0], _padded(x, pads, 2.5))
