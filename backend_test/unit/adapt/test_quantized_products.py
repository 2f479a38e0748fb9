# SPDX-License-Identifier: Apache-2.0
"""QLinearConv and QLinearMatMul with a scale for each channel, as ONNX Runtime's quantization writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import expected

GENERATOR = np.random.default_rng(0)
LIMITS = {"uint8": (0, 256), "int8": (-128, 128)}


def integers(kind: str, *shape: int) -> np.ndarray:
    return np.asarray(GENERATOR.integers(*LIMITS[kind], shape)).astype(kind)


def product(op_type: str, kind: str, weights: str, zero: int | None, *, bias: bool = False) -> ModelProto:
    """One node of constant weights; `zero` is their zero point for each channel, None one scale for all."""
    conv = op_type == "QLinearConv"
    count = 4  # as many output channels as input channels: scales of the one would fit the other
    shape = (count, 4, 3, 3) if conv else (4, count)
    per_channel = zero is not None
    values: dict[str, Any] = {
        "xs": np.float32(0.03),
        "xz": np.array(7, kind),
        "w": integers(weights, *shape),
        "ws": np.linspace(0.01, 0.03, count, dtype=np.float32) if per_channel else np.float32(0.02),
        "wz": np.full(count if per_channel else (), zero or 0, weights),
        "ys": np.float32(1.3 if conv else 0.4),
        "yz": np.array(9, kind),
    }
    if bias:
        values["b"] = GENERATOR.integers(-1000, 1000, count).astype(np.int32)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    attributes = {"pads": [1] * 4} if conv else {}
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x", *values], ["y"], **attributes)],
        "product",
        [helper.make_tensor_value_info("x", element, ["n", 4, "h", "w"] if conv else ["n", 4])],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("op_type", ["QLinearConv", "QLinearMatMul"])
@pytest.mark.parametrize(("kind", "weights"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
@pytest.mark.parametrize("zero", [None, 0, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_scales_of_channels(
    openvino: type[omb.Preset], op_type: str, kind: str, weights: str, zero: int | None, bias: bool
) -> None:
    if zero == 3 and weights == "int8" and op_type == "QLinearConv":
        pytest.skip("ONNX Runtime takes signed weights of a Conv without zero points alone")
    if bias and op_type == "QLinearMatMul":
        pytest.skip("there is no bias")
    pytest.importorskip("onnxruntime")
    model = product(op_type, kind, weights, zero, bias=bias)
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    for rows in (1, 3):
        x = integers(kind, rows, 4, 5, 6) if op_type == "QLinearConv" else integers(kind, rows, 4)
        made, wanted = (p.run(x)[0].astype(int) for p in (prepared, right))
        assert np.abs(made - wanted).max() <= 1
        assert np.mean(made != wanted) < 0.01


def convolution(values: dict[str, Any], given: list[str], x: np.ndarray, group: int) -> ModelProto:
    """A QLinearConv along one axis, or two, of which `given` are inputs."""
    axes = x.ndim - 2
    last = [1] * (axes - 1)
    attributes = {"pads": [1, *[0] * (2 * axes - 1)], "strides": [2, *last], "group": group}
    node = helper.make_node("QLinearConv", ["x", *values], ["y"], **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape)
        for name in given
    ]
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", kind, ["n", 4, *"hw"[:axes]]), *inputs],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(value, name) for name, value in values.items() if name not in given],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("given", ["ws", "wz", "w ws wz", "xs xz ws wz ys yz b"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("engine", ["Openvino", "OrtOpenvino"])
def test_scales_of_channels_that_a_run_brings(
    request: pytest.FixtureRequest, engine: str, given: str, kind: str, group: int
) -> None:
    preset: type[omb.Preset] = request.getfixturevalue("openvino" if engine == "Openvino" else "openvino_ep")
    values = {
        "xs": np.float32(0.25),
        "xz": np.array(7, kind),
        "w": integers(kind, 4, 4 // group, 3, 1),
        "ws": np.float32([0.25, 0.5, 1, 0.125]),
        "wz": GENERATOR.integers(*(np.array(LIMITS[kind]) // 2), 4).astype(kind),
        "ys": np.float32(32),
        "yz": np.array(9, kind),
        "b": GENERATOR.integers(-1000, 1000, 4).astype(np.int32),
    }
    values = {name: np.asarray(value) for name, value in values.items()}
    x = integers(kind, 3, 4, 7, 5)
    model = convolution(values, given.split(), x, group)
    prepared = preset.prepare(model)
    one_axis = preset.prepare(convolution(values | {"w": values["w"][..., 0]}, given.split(), x[..., 0], group))
    for run in range(3):
        values["ws"], values["wz"] = (
            np.roll(values[name], 1) if run and name in given.split() else values[name] for name in ("ws", "wz")
        )
        feeds = {"x": x[: run + 1], **{name: values[name] for name in given.split()}}
        got = prepared.run(feeds)[0]
        # Powers of two scale without rounding, so that only what lies half way is rounded: to the even number.
        np.testing.assert_array_equal(got, expected(model, *feeds.values())[0])
        if "w" in feeds:
            feeds["w"] = feeds["w"][..., 0]
        np.testing.assert_array_equal(one_axis.run({**feeds, "x": feeds["x"][..., 0]})[0], got[..., 0])


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("given", ["bs", "bz", "b bs bz", "as az bs bz ys yz"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("ranks", [(2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("engine", ["Openvino", "OrtOpenvino"])
def test_scales_of_columns_that_a_run_brings(
    request: pytest.FixtureRequest, engine: str, given: str, kind: str, ranks: tuple[int, int]
) -> None:
    preset: type[omb.Preset] = request.getfixturevalue("openvino" if engine == "Openvino" else "openvino_ep")
    values = {
        "as": np.float32(0.25),
        "az": np.array(7, kind),
        "b": integers(kind, *[2] * (ranks[1] - 2), 5, 4),
        "bs": np.float32([0.25, 0.5, 1, 0.125]),
        "bz": GENERATOR.integers(*(np.array(LIMITS[kind]) // 2), 4).astype(kind),
        "ys": np.float32(32),
        "yz": np.array(9, kind),
    }
    values = {name: np.asarray(value) for name, value in values.items()}
    a = integers(kind, *[2] * (ranks[0] - 2), 6, 5)
    element = helper.np_dtype_to_tensor_dtype(a.dtype)
    names = given.split()
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape)
        for n in names
    ]
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["a", *values], ["y"])],
        "product",
        [helper.make_tensor_value_info("a", element, [*[2] * (ranks[0] - 2), "n", 5]), *inputs],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(value, name) for name, value in values.items() if name not in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    prepared = preset.prepare(model)
    for rows in (6, 1, 3):
        feeds = [a[..., :rows, :], *(values[name] for name in names)]
        np.testing.assert_array_equal(prepared.run(feeds)[0], expected(model, *feeds)[0])
        if "bs" in names:
            values["bs"] = np.roll(values["bs"], 1)


def test_constants_are_convolved_by_weights_of_the_run(openvino: type[omb.Preset]) -> None:
    """With a zero point of the run, OpenVINO scaled the constants once more in every run."""
    text = """<ir_version: 10, opset_import: ["": 18]> g (int8 z, int8[2, 1, 1, 1] w) => (int8[1, 2, 2, 2] y)
        <int8[1, 1, 2, 2] x = {-62, 30, 105, -75}, float s = {0.0625}, float one = {1.0}, int8 none = {0}> {
            y = QLinearConv (x, s, z, w, one, none, one, none) }"""
    prepared = openvino.prepare(onnx.parser.parse_model(text))
    x = np.array([-62, 30, 105, -75]).reshape(1, 1, 2, 2)
    for zero, weights in ((91, (6, 3)), (-7, (5, -4)), (91, (6, 3))):
        w = np.array(weights).reshape(1, 2, 1, 1)
        expected = np.clip(np.rint((x - zero) * w * 0.0625), -128, 127).astype(np.int8)
        found = prepared.run([np.int8(zero), w.reshape(2, 1, 1, 1).astype(np.int8)])[0]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("scales", [[0.25], [0.25, 0.5]])
@pytest.mark.parametrize(("kind", "zeros"), [("uint8", (33, 118)), ("int8", (109, 0))])
def test_constants_are_convolved_by_constants(
    openvino: type[omb.Preset], kind: str, zeros: tuple[int, int], scales: list[float]
) -> None:
    rng = np.random.default_rng(0)
    limits = np.iinfo(kind)
    constants = {
        "x": rng.integers(limits.min, limits.max, (2, 1, 5, 5)).astype(kind),
        "x_scale": np.float32(0.1),
        "x_zero": np.array(zeros[0], kind),
        "w": rng.integers(-128, 127, (2, 1, 2, 3)).astype(np.int8),
        "w_scale": np.array(scales if len(scales) > 1 else scales[0], np.float32),
        "w_zero": np.full(len(scales) if len(scales) > 1 else (), zeros[1], np.int8),
        "y_scale": np.float32(20),
        "y_zero": np.array(38, kind),
    }
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    result = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), (2, 2, 4, 3))
    graph = helper.make_graph([helper.make_node("QLinearConv", [*constants], ["y"])], "g", [], [result], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    got, wanted = openvino.run_model(model, [])[0], expected(model)[0]
    assert len(np.unique(wanted)) > 10
    assert np.abs(got.astype(int) - wanted.astype(int)).max() <= 1


def test_a_zero_point_of_any_number_is_that_of_one_output_channel(
    openvino: type[omb.Preset], ort_cpu: type[omb.Preset]
) -> None:
    """Its number is known at run time alone, and that there is one channel tells it."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (uint8[a, 1, 4, b] x, int8[n] z) => (int8[c, d, e, f] y) <float s = {0.25}, uint8 o = {59}, float[1] t = {0.25},
        int8[1, 1, 3, 3] w = {14, 80, 36, -53, -24, -21, -38, 93, -73}, float u = {90.5}, int8 p = {10}> {
        y = QLinearConv <pads = [2, 2, 1, 0], strides = [1, 3]> (x, s, o, w, t, z, u, p) }""",
    )
    prepared, right = openvino.prepare(model), ort_cpu.prepare(model)
    x = np.random.default_rng(7).integers(0, 256, (2, 1, 4, 6)).astype(np.uint8)
    for zero in (0, -7, 100):
        (found,), (wanted,) = (rep.run([x, np.array([zero], np.int8)]) for rep in (prepared, right))
        assert np.unique(wanted).size > 9
        assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("zero", [0, 7, 128])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("engine", ["Openvino", "OrtOpenvino"])
def test_a_scale_of_rank_1_is_that_of_all_unsigned_weights(
    request: pytest.FixtureRequest, engine: str, channels: int, zero: int, ort_cpu: type[omb.Preset]
) -> None:
    preset: type[omb.Preset] = request.getfixturevalue("openvino" if engine == "Openvino" else "openvino_ep")
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (uint8[1, 3, 6, 6] x) => (uint8[1, {channels}, 4, 4] y) <float s = {{0.02}}, uint8 o = {{120}},
        float[1] t = {{0.01}}, uint8[1] z = {{{zero}}}, float u = {{0.25}}, uint8 p = {{100}}> {{ y = QLinearConv (x, s, o, w, t, z, u, p) }}"""
    )
    rng = np.random.default_rng(zero)
    model.graph.initializer.append(
        numpy_helper.from_array(rng.integers(0, 256, (channels, 3, 3, 3)).astype(np.uint8), "w")
    )
    x = rng.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    (found,), (wanted,) = (rep.prepare(model).run([x]) for rep in (preset, ort_cpu))
    assert np.unique(wanted).size > 9
    assert np.abs(found.astype(int) - wanted).max() <= 1


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("given", ["", ", float ws"])
def test_ties_are_rounded_to_even(given: str, preset: type[omb.Preset]) -> None:
    """42 * 0.25 * 0.05 / 0.05 is 10.5, and a bit more where it is divided last."""
    sums = np.arange(2, 256, 4, dtype=np.uint8)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g (float f{given}) => (uint8[a, b, c, d] y, float r)
            <float xs = {{0.25}}, uint8 z = {{0}}{"" if given else ", float ws = {0.05}"}, float ys = {{0.05}},
            uint8[1, 1, 1, 1] w = {{1}}> {{ y = QLinearConv (x, xs, z, w, ws, z, ys, z) r = Relu (f) }}"""
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(sums.reshape(1, 1, 8, 8), "x"))
    feeds = {"f": np.float32(0)} | ({given.split()[-1]: np.float32(0.05)} if given else {})
    found, _ = preset.prepare(model, fallback="full", cache_dir=False).run(feeds)
    np.testing.assert_array_equal(found.ravel(), np.rint(sums / 4))
