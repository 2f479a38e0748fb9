# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's writer of Q/DQ nodes, and what a model must be for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, version_converter

from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.engines.ort.quantization import silent
from onnx_multi_backend.errors import CalibrationTableError, UnsupportedModelError
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.node_order import in_order

#: The first opset whose Q/DQ nodes have an axis: before it, weights have one scale.
OPSET = 13


@dataclass(frozen=True)
class Layout:
    """How Q/DQ nodes are written for an engine.

    Attributes
    ----------
    signed_activations : bool
        int8 instead of uint8.
    symmetric_activations : bool
        Zero points in the middle of the type.
    narrow_weights : bool
        7 bits, with which no processor's sum of two products saturates.
    operators : tuple of str
        The operators whose nodes are quantized.
    extra : mapping of str to value
        Further options of ONNX Runtime's `QDQQuantizer`.
    """

    signed_activations: bool = False
    symmetric_activations: bool = False
    narrow_weights: bool = False
    operators: tuple[str, ...] = ("Conv", "ConvTranspose", "MatMul", "Gemm")
    extra: Mapping[str, Any] = field(default_factory=dict)


def write_qdq(
    model: ModelProto, ranges: Mapping[str, tuple[float, float]], layout: Layout, nodes: Sequence[str]
) -> ModelProto:
    """Put Q/DQ nodes around nodes.

    Parameters
    ----------
    model : onnx.ModelProto
        Of opset 13 at least, its nodes named; it is not changed.
    ranges : mapping of str to (float, float)
        Of every tensor that these nodes read or write, but constants.
    layout : Layout
    nodes : sequence of str
        The nodes to quantize, by name.
    """
    runtime.load()
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization.calibrate import TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    copy = ModelProto()
    copy.CopyFrom(model)
    if not nodes:
        return copy
    data = {name: (np.array(low, np.float32), np.array(high, np.float32)) for name, (low, high) in ranges.items()}
    with silent():
        writer = QDQQuantizer(
            copy,
            True,
            layout.narrow_weights,
            QuantType.QInt8,
            QuantType.QInt8 if layout.signed_activations else QuantType.QUInt8,
            TensorsData(CalibrationMethod.MinMax, data),
            list(nodes),
            [],
            list(layout.operators),
            {"ActivationSymmetric": layout.symmetric_activations, "WeightSymmetric": True, **layout.extra},
        )
        writer.quantize_model()
    return in_order(writer.model.model)  # it appends what it writes


#: TensorRT fuses symmetric pairs alone, one for each reader of a tensor, and wants biases in float.
TENSORRT = Layout(
    signed_activations=True,
    symmetric_activations=True,
    extra={"QuantizeBias": False, "AddQDQPairToWeight": True, "DedicatedQDQPair": True},
)


def ready(model: ModelProto, label: str) -> ModelProto:
    """The model in opset 13 at least, with its constants as initializers and a name for each node of the main graph.

    Raises
    ------
    UnsupportedModelError
        ONNX's converter does not get it to opset 13.
    """
    made = ModelProto()
    made.CopyFrom(_raised(model, label))
    nodes = []
    for node in made.graph.node:
        if node.op_type == "Constant" and not canonical(node.domain) and node.attribute[0].name == "value":
            made.graph.initializer.append(node.attribute[0].t)
            made.graph.initializer[-1].name = node.output[0]
        else:
            nodes.append(node)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    seen: set[str] = set()
    for i, node in enumerate(made.graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.op_type}_{i}"
        seen.add(node.name)
    return made


def _raised(model: ModelProto, label: str) -> ModelProto:
    opset = next((e.version for e in model.opset_import if not canonical(e.domain)), OPSET)
    if opset >= OPSET:
        return model
    try:
        return version_converter.convert_version(model, OPSET)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        raise UnsupportedModelError(
            f"{label} is of opset {opset}, Q/DQ nodes with a scale for each channel need {OPSET}, and ONNX's converter "
            f"does not get there: {str(error).strip().splitlines()[0]} Export the model with opset {OPSET} or newer."
        ) from error


def from_magnitudes(model: ModelProto, magnitudes: Mapping[str, float], label: str) -> ModelProto:
    """Write a calibration table into a model, as TensorRT wants it.

    Parameters
    ----------
    model : onnx.ModelProto
    magnitudes : mapping of str to float
        The largest magnitude of each tensor.

    Raises
    ------
    CalibrationTableError
        The table names no tensor of the model, or not all that a layer reads and writes.
    UnsupportedModelError
    """
    made = ready(model, label)
    constants = {tensor.name for tensor in made.graph.initializer}
    nodes = [node for node in made.graph.node if node.op_type in TENSORRT.operators]
    needed = {node.name: {*node.input[:2], *node.output} - constants - {""} for node in nodes}
    complete = [name for name, tensors in needed.items() if tensors <= magnitudes.keys()]
    if not complete:
        missing = sorted(set().union(*needed.values()) - magnitudes.keys())
        named = f" It has no range for {', '.join(map(repr, missing[:3]))}." if missing else ""
        raise CalibrationTableError(
            f"The calibration table quantizes no layer of {label}: it fits another model, or the model has no "
            f"{', '.join(TENSORRT.operators)}.{named} Calibrate this model."
        )
    return write_qdq(made, {name: (-m, m) for name, m in magnitudes.items()}, TENSORRT, complete)
