# SPDX-License-Identifier: Apache-2.0
"""Quantized operators of ONNX Runtime's domain come out on OpenVINO as ONNX Runtime computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.openvino.quantized_operators import written_out
from onnx_multi_backend.models.contents import Contents

GENERATOR = np.random.default_rng(0)
SHAPE = (1, 4, 8, 8)
ONE, OTHER, MADE = 0.021, 0.013, 0.017
ZEROS = {"uint8": (117, 120, 96), "int8": (-11, 8, -32)}
#: By operator: where its inputs stand, and its attributes. x and o are the operands, c a condition.
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "QLinearAdd": ("x xs xz o os oz ys yz", {}),
    "QLinearGlobalAveragePool": ("x xs xz ys yz", {}),
    "QLinearReduceMean": ("x xs xz ys yz", {"axes": [2, 3], "keepdims": 1}),
    "QLinearAveragePool": ("x xs xz ys yz", {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
    "QLinearConcat": ("ys yz x xs xz o os oz", {"axis": 1}),
    "QLinearLeakyRelu": ("x xs xz ys yz", {"alpha": 0.27}),
    "QLinearMul": ("x xs xz o os oz ys yz", {}),
    "QLinearSigmoid": ("x xs xz ys yz", {}),
    "QLinearSoftmax": ("x xs xz ys yz", {"axis": 1, "opset": 13}),
    "QLinearWhere": ("c x xs xz o os oz ys yz", {}),
}


def quantized(op_type: str, kind: str, sizes: tuple[Any, ...] = SHAPE, **more: Any) -> ModelProto:
    """Both inputs quantized, the operator twice, and its result scaled back."""
    places, attributes = FORMS[op_type][0], {**FORMS[op_type][1], **more}
    zeros = [np.array(zero, kind) for zero in ZEROS[kind]]
    scales = [np.float32(scale) for scale in (ONE, OTHER, MADE)]
    if op_type == "QLinearSoftmax":
        scales[2], zeros[2] = np.float32(1 / 256), np.array(0 if kind == "uint8" else -128, kind)
    again = places.replace("xs", "ys").replace("xz", "yz").split()
    nodes = [
        helper.make_node("QuantizeLinear", ["a", "xs", "xz"], ["x"]),
        helper.make_node("QuantizeLinear", ["b", "os", "oz"], ["o"]),
        helper.make_node("Less", ["a", "b"], ["c"]),
        helper.make_node(op_type, places.split(), ["y"], domain="com.microsoft", **attributes),
        helper.make_node("DequantizeLinear", ["y", "ys", "yz"], ["first"]),
    ]
    if op_type != "QLinearConcat":
        read = ["y" if name == "x" else name for name in again]
        nodes += [
            helper.make_node(op_type, read, ["z"], domain="com.microsoft", **attributes),
            helper.make_node("DequantizeLinear", ["z", "ys", "yz"], ["second"]),
        ]
    else:
        nodes.append(helper.make_node("Neg", ["first"], ["second"]))
    return models.model(
        nodes,
        [models.tensor("a", list(sizes)), models.tensor("b", list(sizes))],
        [models.tensor("first", None), models.tensor("second", None)],
        initializers=dict(zip("xs os ys xz oz yz".split(), (*scales, *zeros), strict=True)),
        opsets={"": 17, "com.microsoft": 1},
    )


@pytest.mark.parametrize("kind", ZEROS)
@pytest.mark.parametrize("op_type", FORMS)
@pytest.mark.parametrize("sizes", [SHAPE, (1, 4, "h", "w")])
def test_a_quantized_operator(openvino: type[omb.Preset], op_type: str, kind: str, sizes: tuple[Any, ...]) -> None:
    pytest.importorskip("onnxruntime")
    model = quantized(op_type, kind, sizes)
    # ONNX Runtime has no kernel for this one.
    literal = written_out(Contents(model))[0] if op_type == "QLinearReduceMean" else model
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(literal)
    step = 1 / 256 if op_type == "QLinearSoftmax" else MADE
    for _ in range(2):
        feeds = {name: GENERATOR.normal(size=SHAPE).astype(np.float32) for name in "ab"}
        for made, wanted in zip(prepared.run(feeds), right.run(feeds), strict=True):
            off = np.abs(made - wanted) / step
            assert off.max() < 1.01
            assert np.mean(off > 0.5) < 0.01, (off.max(), np.mean(off > 0.5))


def test_scales_of_rank_1_and_zero_points_that_are_left_out(openvino: type[omb.Preset]) -> None:
    pytest.importorskip("onnxruntime")
    model = quantized("QLinearLeakyRelu", "uint8")
    for tensor in model.graph.initializer:
        if tensor.name in ("xs", "ys"):
            tensor.dims.append(1)
    first, second = (node for node in model.graph.node if node.op_type == "QLinearLeakyRelu")
    first.input[2] = first.input[4] = second.input[2] = second.input[4] = ""
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            del node.input[2:]
            node.input[1] = {"xs": "one", "ys": "made", "os": "one"}[node.input[1]]
    model.graph.initializer.extend(
        helper.make_tensor(name, TensorProto.FLOAT, [], [value]) for name, value in (("one", ONE), ("made", MADE))
    )
    feeds = {name: GENERATOR.normal(size=SHAPE).astype(np.float32) for name in "ab"}
    right = omb.OrtCpuBackend.prepare(model).run(feeds)
    for made, wanted in zip(openvino.prepare(model).run(feeds), right, strict=True):
        assert np.mean(np.abs(made - wanted) > MADE / 2) < 0.01


@pytest.mark.parametrize("opset", [12, 13])
def test_the_opset_of_a_softmax_counts(openvino: type[omb.Preset], opset: int) -> None:
    pytest.importorskip("onnxruntime")
    model = quantized("QLinearSoftmax", "uint8", opset=opset)
    feeds = {name: GENERATOR.normal(size=SHAPE).astype(np.float32) for name in "ab"}
    right = omb.OrtCpuBackend.prepare(model).run(feeds)
    for made, wanted in zip(openvino.prepare(model).run(feeds), right, strict=True):
        assert np.abs(made - wanted).max() < 1.01 / 256


def test_a_pool_of_the_last_axes_before_the_channels(openvino: type[omb.Preset]) -> None:
    pytest.importorskip("onnxruntime")
    model = quantized("QLinearAveragePool", "int8", channels_last=1)
    feeds = {name: GENERATOR.normal(size=SHAPE).astype(np.float32) for name in "ab"}
    right = omb.OrtCpuBackend.prepare(model).run(feeds)
    for made, wanted in zip(openvino.prepare(model).run(feeds), right, strict=True):
        assert made.shape == wanted.shape
        assert np.mean(np.abs(made - wanted) > MADE / 2) < 0.01


def product(*, transposed: bool, by_column: bool, quantized: bool, biased: bool) -> ModelProto:
    """QGemm of a quantized input and weights of int8, its result in uint8 or float32."""
    rng = np.random.default_rng(1)
    weights = rng.integers(-90, 90, (5, 6) if transposed else (6, 5)).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, 5).astype(np.float32) if by_column else np.float32(0.013)
    inputs = ["x", "xs", "xz", "w", "ws", "wz", "c" if biased else "", *(("ys", "yz") if quantized else ())]
    made, outputs = ("q", [helper.make_node("DequantizeLinear", ["q", "ys", "yz"], ["y"])]) if quantized else ("y", [])
    nodes = [
        helper.make_node("QuantizeLinear", ["a", "xs", "xz"], ["x"]),
        helper.make_node("QGemm", inputs, [made], domain="com.microsoft", transB=int(transposed), alpha=0.7),
        *outputs,
    ]
    initializers = {
        "xs": np.float32(0.02),
        "xz": np.uint8(120),
        "w": weights,
        "ws": scales,
        "ys": np.float32(0.03),
        "yz": np.uint8(130),
    }
    initializers["wz"] = np.zeros_like(scales, np.int8)
    initializers["c"] = rng.integers(-4000, 4000, 5).astype(np.int32)
    used = {name for node in nodes for name in node.input}
    return models.model(
        nodes,
        [models.tensor("a", ["n", 6])],
        [models.tensor("y", None)],
        initializers={name: value for name, value in initializers.items() if name in used},
        opsets={"": 17, "com.microsoft": 1},
    )


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("by_column", [True, False])
@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_qgemm(openvino: type[omb.Preset], transposed: bool, by_column: bool, quantized: bool, biased: bool) -> None:
    pytest.importorskip("onnxruntime")
    model = product(transposed=transposed, by_column=by_column, quantized=quantized, biased=biased)
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    for rows in (4, 2):
        x = np.random.default_rng(rows).normal(size=(rows, 6)).astype(np.float32)
        np.testing.assert_allclose(prepared.run([x])[0], right.run([x])[0], atol=0.031 if quantized else 1e-5)


def test_types_are_inferred_behind_them(openvino: type[omb.Preset]) -> None:
    """Those of the convolution behind a QLinearAdd: a scale for each output channel is written along the axis of the channels."""
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(2)
    nodes = [
        helper.make_node("QuantizeLinear", ["a", "s", "z"], ["x"]),
        helper.make_node("QLinearAdd", ["x", "s", "z", "x", "s", "z", "t", "z"], ["d"], domain="com.microsoft"),
        helper.make_node("QLinearConv", ["d", "t", "z", "w", "ws", "wz", "s", "z"], ["q"], kernel_shape=[1, 1]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    initializers = {
        "s": np.float32(0.05),
        "t": np.float32(0.1),
        "z": np.uint8(128),
        "w": rng.integers(-90, 90, (3, 4, 1, 1)).astype(np.int8),
        "ws": np.float32([0.001, 0.01, 0.1]),
        "wz": np.zeros(3, np.int8),
    }
    model = models.model(
        nodes,
        [models.tensor("a", ["n", 4, "h", "w_"])],
        [models.tensor("y", None)],
        initializers=initializers,
        opsets={"": 17, "com.microsoft": 1},
    )
    x = rng.normal(size=(1, 4, 3, 3)).astype(np.float32)
    made, right = (preset.prepare(model).run([x])[0] for preset in (openvino, omb.OrtCpuBackend))
    np.testing.assert_allclose(made, right, atol=0.051)


def _pool(kernel: Any, strides: Any, pads: Any, sizes: tuple[Any, ...] = ("n", 2, "h", "w"), **more: Any) -> ModelProto:
    scales = {"xs": np.float32(0.0213), "xz": np.int8(3), "ys": np.float32(0.0177), "yz": np.int8(-5)}
    windows = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": 1, "count_include_pad": 1} | more
    given = {name: value for name, value in windows.items() if value is not None}
    return models.model(
        [helper.make_node("QLinearAveragePool", ["x", *scales], ["y"], domain="com.microsoft", **given)],
        [models.tensor("x", list(sizes), TensorProto.INT8)],
        [models.tensor("y", None, TensorProto.INT8)],
        initializers=scales,
        opsets={"": 17, "com.microsoft": 1},
    )


@pytest.mark.parametrize("pads", [[0] * 4, [1] * 4, [1, 0, 0, 1]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 2], [3, 2]])
@pytest.mark.parametrize("kernel", [[3, 3], [2, 3], [4, 5]])
def test_windows_that_reach_beyond_the_pads(
    openvino: type[omb.Preset], kernel: list[int], strides: list[int], pads: list[int]
) -> None:
    """ONNX Runtime divides by the size of the whole window, AveragePool does not."""
    pytest.importorskip("onnxruntime")
    model = _pool(kernel, strides, pads)
    if any(pad + stride - 1 >= size for pad, stride, size in zip(pads[2:], strides, kernel, strict=True)):
        with pytest.raises(omb.UnsupportedModelError, match="is not written with Q/DQ nodes"):
            openvino.prepare(model)
        return
    prepared, right = openvino.prepare(model), omb.OrtCpuBackend.prepare(model)
    for sizes in ((1, 2, 6, 6), (2, 2, 7, 8), (1, 2, 9, 5)):
        x = GENERATOR.integers(-128, 128, sizes).astype(np.int8)
        (made,), (wanted,) = prepared.run(x), right.run(x)
        assert made.shape == wanted.shape
        off = np.abs(made.astype(int) - wanted)
        assert off.max() < 2
        assert np.mean(off) < 0.02


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(
    ("sizes", "kernel", "strides", "pads", "how"),
    [
        ((7, 8), [3, 3], [2, 2], None, "SAME_UPPER"),
        ((7, 8), [3, 3], [2, 2], None, "SAME_LOWER"),
        ((7, 8), [3, 3], [2, 3], None, "VALID"),
        ((7,), [2], [3], [1, 1], "NOTSET"),
        ((7,), [2], [3], [0, 0], "NOTSET"),
        ((7, 8), [3, 2], [2, 3], [1, 0, 1, 0], "NOTSET"),
        ((5, 6), [3, 3], [3, 2], [0, 0, 2, 2], "NOTSET"),
        ((6, 6), [2, 2], [4, 4], None, "NOTSET"),
        ((5, 6, 7), [2, 3, 2], [2, 2, 3], None, "NOTSET"),
    ],
)
def test_windows_over_images_of_known_sizes(
    openvino: type[omb.Preset], sizes: tuple[int, ...], kernel: Any, strides: Any, pads: Any, how: str, last: int
) -> None:
    pytest.importorskip("onnxruntime")
    whole = (2, *sizes, 3) if last else (2, 3, *sizes)
    model = _pool(kernel, strides, pads, whole, auto_pad=how, channels_last=last)
    x = GENERATOR.integers(-128, 128, whole).astype(np.int8)
    (made,), (wanted,) = openvino.prepare(model).run(x), omb.OrtCpuBackend.prepare(model).run(x)
    assert made.shape == wanted.shape
    off = np.abs(made.astype(int) - wanted)
    assert off.max() < 2
    assert np.mean(off) < 0.02


@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        (None, [2, 2], None),
        (3, 2, None),
        ([3, 3], [2], None),
        ([3, 3], [2, 2], [1, 1]),
        ([3, 3], ["a", "b"], None),
        ([3, 3], [0, 0], None),
    ],
)
@pytest.mark.parametrize("last", [0, 1])
def test_windows_that_are_not_valid(
    openvino: type[omb.Preset], kernel: Any, strides: Any, pads: Any, last: int
) -> None:
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(_pool(kernel, strides, pads, channels_last=last))


def test_what_cannot_be_written_is_refused(openvino: type[omb.Preset]) -> None:
    """OpenVINO gives what has nothing to do with the input."""
    scales = {"s": np.float32(0.02), "z": np.uint8(3)}
    model = models.model(
        [helper.make_node("QLinearAdd", ["x", "s", "z", "x", "s", "z", "s", "z"], ["y"], domain="com.microsoft")],
        [models.tensor("x", [2, 3], TensorProto.UINT8)],
        [models.tensor("y", [2, 3], TensorProto.UINT8)],
        initializers=scales,
        opsets={"": 9, "com.microsoft": 1},  # below the first opset with QuantizeLinear
    )
    with pytest.raises(omb.UnsupportedModelError, match="is not written with Q/DQ nodes"):
        openvino.prepare(model)
