# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO computes rightly once, and wrongly in each run after it; and results that it puts in another's place."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

PRESETS = ("openvino", "openvino_ep")


def check(request: pytest.FixtureRequest, preset: str, text: str, runs: list[list[np.ndarray]]) -> omb.PreparedModel:
    """Hold each run to ONNX Runtime's."""
    prepared = request.getfixturevalue(preset).prepare(model := onnx.parser.parse_model(text))
    pytest.importorskip("onnxruntime")
    right = omb.OrtCpuBackend.prepare(model)
    for values in runs:
        for got, wanted in zip(prepared.run(values), right.run(values), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    return prepared  # type: ignore[no-any-return]


def pictures(*shape: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(3)
    return [[(rng.normal(size=shape) * scale).astype(np.float32)] for scale in (0.5, 2, 0.5)]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("channels", [2, 3, 5, 16])
@pytest.mark.parametrize(
    ("opset", "mean"),
    [
        (13, "y = ReduceMean <axes = [0, 2, 3]> (v)"),
        (13, "y = ReduceMean <axes = [0, -2, -1], keepdims = 0> (v)"),
        (18, "a = Constant <value_ints = [3, 0, 2]> () y = ReduceMean (v, a)"),
        (18, "a = Constant <value = int64[3] {3, 0, 2}> () y = ReduceMean <keepdims = 0> (v, a)"),
        (13, "y = MeanVarianceNormalization (v)"),
        (13, "y = MeanVarianceNormalization <axes = [0, 2, 3]> (v)"),
    ],
)
@pytest.mark.parametrize("sizes", ["3, {}, 5, 5", "n, {}, h, w"])
def test_means_of_few_channels(
    request: pytest.FixtureRequest, preset: str, channels: int, opset: int, mean: str, sizes: str
) -> None:
    """From the second run on, OpenVINO adds what the runs before have left."""
    dims = "c" if "keepdims = 0" in mean else "a, c, d, e"
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[{sizes.format(channels)}] x) => (float[{dims}] y) {{
        v = MaxPool <kernel_shape = [2, 2]> (x) {mean} }}"""
    check(request, preset, text, pictures(3, channels, 5, 5))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1, 3, 5, 5), "0, 2, 3"), ((3, 3, 5, 5), "2, 3"), ((3, 3, 5), "0, 2")],
)
def test_other_means_stay(request: pytest.FixtureRequest, shape: tuple[int, ...], axes: str) -> None:
    window = ", ".join("2" * (len(shape) - 2))
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (float[{", ".join(map(str, shape))}] x) => (float[{", ".join("abcd"[: len(shape)])}] y) {{
        v = MaxPool <kernel_shape = [{window}]> (x) y = ReduceMean <axes = [{axes}]> (v) }}"""
    assert check(request, "openvino", text, pictures(*shape)).adaptations == ()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("channels", [2, 3, 5])
def test_means_of_planes(request: pytest.FixtureRequest, preset: str, channels: int, keepdims: int) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (float[n, {channels}, 4, 4, 4] x) => (float[{"a, b, c, d, e" if keepdims else "b, c"}] y) {{
        v = MaxPool <kernel_shape = [2, 2, 2]> (x) y = ReduceMean <axes = [0, 3, 4], keepdims = {keepdims}> (v) }}"""
    check(request, preset, text, pictures(3, channels, 4, 4, 4))


@pytest.mark.parametrize("preset", PRESETS)
def test_means_whose_axes_a_function_is_given(request: pytest.FixtureRequest, preset: str) -> None:
    text = """<ir_version: 10, opset_import: ["": 13, "l": 1]> g (float[N, 3, 8, 8] x) => (float[a, b, c, d] y) {
        y = l.F <k = [0, 2, 3]> (x) }
        <domain: "l", opset_import: ["": 13]> F <k> (x) => (y) {
        p = MaxPool <kernel_shape = [2, 2]> (x) y = ReduceMean <axes: ints = @k> (p) }"""
    check(request, preset, text, pictures(2, 3, 8, 8))


Z, SIZES, X = np.arange(64).reshape(4, 4, 4), np.array([16, 4]), np.float32([[[[1, -2, 3]]]])


@pytest.mark.parametrize(
    "nodes",
    [
        "v = Reshape (z, s) w = Reshape (v, t)",
        "v = Reshape (z, s) u = Identity (v) w = Reshape (u, t)",
        "v = Reshape (z, s) u = Reshape (v, t) w = Reshape (u, s)",
        "v = Reshape (z, s) u = Neg (v) w = Reshape (u, t)",
        "v = Reshape (z, s) f = Flatten <axis = 1> (v) w = Reshape (f, t)",
    ],
)
@pytest.mark.parametrize(
    "inputs", ["int64[4, 4, 4] z, int64[2] s, int64[2] t", "int64[2] t, int64[2] s, int64[4, 4, 4] z"]
)
def test_shapes_that_one_reshape_behind_another_leaves_unread(
    request: pytest.FixtureRequest, nodes: str, inputs: str
) -> None:
    """OpenVINO makes one of them, whose shape is declared; ONNX Runtime's provider counts the inputs as before."""
    text = f"""<ir_version: 8, opset_import: ["": 18]> g ({inputs}, float[1, 1, 1, 3] x) => (int64[16, 4] w, float[1, 1, 1, 3] y) {{
        {nodes} y = Relu (x) }}"""
    values = {"z": Z, "s": SIZES, "t": SIZES, "x": X}
    names = [word for word in f"{inputs}, x".replace(",", " ").split() if word in values]
    check(request, "openvino_ep", text, [[values[name] for name in names]] * 2)


@pytest.mark.parametrize(
    ("inputs", "made", "nodes"),
    [
        ("int64[2] s, float[2, 3] x", "float[6] z", "v = Reshape (x, s) z = Squeeze (v)"),
        ("int64[1] a, int64[1] r, float[2, 3] x", "float[1, 6] z", "v = Reshape (x, r) z = Unsqueeze (v, a)"),
        (
            "float[2, 3] x, int64[1] a, int64[3] t, int64[1] r",
            "float[1, 2, 1, 3] z",
            "v = Reshape (x, r) u = Reshape (v, t) i = Identity (u) z = Unsqueeze (i, a)",
        ),
    ],
)
def test_axes_that_such_a_chain_leaves_unread(
    request: pytest.FixtureRequest, inputs: str, made: str, nodes: str
) -> None:
    text = f"""<ir_version: 8, opset_import: ["": 17]> g ({inputs}, float[3] w) => ({made}, float[3] y) {{
        {nodes} y = Softplus (w) }}"""
    values = {"s": np.array([1, 6]), "a": np.array([0]), "r": np.array([6]), "t": np.array([2, 1, 3])}
    values |= {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "w": np.float32([1, 2, 3])}
    names = [word for word in f"{inputs}, w".replace(",", " ").split() if word in values]
    check(request, "openvino_ep", text, [[values[name] for name in names]] * 2)


def test_a_long_chain_between_two_reshapes(openvino_ep: type[omb.Preset]) -> None:
    nodes = " ".join(f"v{i + 1} = Identity (v{i})" for i in range(1200))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x, int64[2] s, int64[2] t) => (float[3, 2] z) {{
        v0 = Reshape (x, s) {nodes} z = Reshape (v1200, t) }}"""
    )
    x = np.arange(6, dtype=np.float32)
    (z,) = openvino_ep.prepare(model).run([x.reshape(2, 3), np.array([6, 1]), np.array([3, 2])])
    np.testing.assert_array_equal(z, x.reshape(3, 2))
