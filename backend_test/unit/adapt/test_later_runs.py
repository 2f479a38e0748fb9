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
@pytest.mark.parametrize("channels", [2, 3])
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
    [((3, 4, 5, 5), "0, 2, 3"), ((1, 3, 5, 5), "0, 2, 3"), ((3, 3, 5, 5), "2, 3"), ((3, 3, 5), "0, 2")],
)
def test_other_means_stay(request: pytest.FixtureRequest, shape: tuple[int, ...], axes: str) -> None:
    window = ", ".join("2" * (len(shape) - 2))
    text = f"""<ir_version: 8, opset_import: ["": 13]> g (float[{", ".join(map(str, shape))}] x) => (float[{", ".join("abcd"[: len(shape)])}] y) {{
        v = MaxPool <kernel_shape = [{window}]> (x) y = ReduceMean <axes = [{axes}]> (v) }}"""
    assert check(request, "openvino", text, pictures(*shape)).adaptations == ()


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
