# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's writer of Q/DQ nodes, and what a model must be for it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, version_converter

from onnx_multi_backend.engines.ort import qdq_names, runtime
from onnx_multi_backend.engines.ort.quantization import silent
from onnx_multi_backend.engines.ort.raised_resize import RESIZE, say_where_pixels_lie
from onnx_multi_backend.errors import CalibrationTableError, UnsupportedModelError
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.node_order import in_order

#: The first opset whose Q/DQ nodes have an axis: before it, weights have one scale.
OPSET = 13


#: What quantizers written in Python raise for a node that they did not think of.
PYTHON_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


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
    data = {
        qdq_names.tagged(name): (np.array(low, np.float32), np.array(high, np.float32))
        for name, (low, high) in ranges.items()
    }
    names = qdq_names.tag(copy)
    try:
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
    except PYTHON_ERRORS as error:
        raise UnsupportedModelError(
            f"ONNX Runtime cannot write Q/DQ nodes around {', '.join(map(repr, nodes[:3]))}: {type(error).__name__}: "
            f"{qdq_names.untagged(str(error))}"
        ) from error
    made: ModelProto = writer.model.model
    qdq_names.untag(made, names)
    return in_order(made)  # the writer appends what it writes


#: What the copy of an input ends with.
_READ = "/omb_read"

#: TensorRT fuses symmetric pairs alone, one for each reader of a tensor, and wants biases in float.
TENSORRT = Layout(
    signed_activations=True,
    symmetric_activations=True,
    extra={"QuantizeBias": False, "AddQDQPairToWeight": True, "DedicatedQDQPair": True},
)


def ready(model: ModelProto, label: str) -> ModelProto:
    """The model as the writer can take it, with the same results.

    Of opset 13 and IR 4 at least, its constants initializers, each node of the main graph with a name of its own, no output that is an
    input, and each Gemm with an alpha and a beta of 1 where its weight and bias are constants.

    Raises
    ------
    UnsupportedModelError
        ONNX's converter does not get it to opset 13.
    """
    made = ModelProto()
    made.CopyFrom(_raised(model, label))
    made.ir_version = max(made.ir_version, 4)  # from then on initializers need not be inputs
    nodes = []
    for node in made.graph.node:
        if node.op_type == "Constant" and not canonical(node.domain) and node.attribute[0].name == "value":
            made.graph.initializer.append(node.attribute[0].t)
            made.graph.initializer[-1].name = node.output[0]
        else:
            nodes.append(node)
    nodes = [*_apart(made, nodes), *nodes]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    constants = {tensor.name: tensor for tensor in made.graph.initializer}
    for node in made.graph.node:
        if node.op_type == "Gemm":
            _plain_gemm(made, node, constants)
    _share_no_weight(made, constants)
    taken = {node.name for node in made.graph.node}
    seen: set[str] = set()
    for node in made.graph.node:
        if not node.name or node.name in seen:
            free = (f"{node.op_type}_{i}" for i in itertools.count())
            node.name = next(name for name in free if name not in taken)
            taken.add(node.name)
        seen.add(node.name)
    return made


def _apart(model: ModelProto, nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Have nodes read a copy of an input that is an output too: Q/DQ nodes at the one would change the other."""
    both = {value.name for value in model.graph.input} & {value.name for value in model.graph.output}
    copies = {name: f"{name}{_READ}" for name in both}
    for node in nodes:
        for i, name in enumerate(node.input):
            node.input[i] = copies.get(name, name)
    return [helper.make_node("Identity", [name], [copy]) for name, copy in sorted(copies.items())]


def _plain_gemm(model: ModelProto, node: NodeProto, constants: dict[str, TensorProto]) -> None:
    """Multiply a constant weight by alpha and a constant bias by beta.

    The writer forgets beta, and ONNX Runtime 1.24 multiplies a float bias by alpha where it computes the product in int8.
    """
    alpha, beta = (next((a.f for a in node.attribute if a.name == name), 1.0) for name in ("alpha", "beta"))
    if len(node.input) < 3 and beta != 1:
        beta = _set(node, "beta")
    if beta == 0:
        del node.input[2:]
        beta = _set(node, "beta")
    if beta != 1 and node.input[2] in constants:
        node.input[2] = _scaled(model, node.input[2], beta, f"{node.output[0]}/omb_bias", constants)
        _set(node, "beta")
    if alpha != 1 and node.input[1] in constants:
        node.input[1] = _scaled(model, node.input[1], alpha, f"{node.output[0]}/omb_scaled", constants)
        _set(node, "alpha")


def _set(node: NodeProto, name: str) -> float:
    """Take an attribute away: it is 1 then."""
    for attribute in [a for a in node.attribute if a.name == name]:
        node.attribute.remove(attribute)
    return 1.0


def _scaled(model: ModelProto, name: str, factor: float, new: str, constants: dict[str, TensorProto]) -> str:
    values = numpy_helper.to_array(constants[name])
    model.graph.initializer.append(numpy_helper.from_array((values * np.asarray(factor, values.dtype)), new))
    constants[new] = model.graph.initializer[-1]
    return new


def _share_no_weight(model: ModelProto, constants: Mapping[str, TensorProto]) -> None:
    """Give layers that read one weight along different axes weights of their own: its scales lie along one."""
    first: dict[str, tuple[str, bool]] = {}
    for node in model.graph.node:
        if node.op_type not in Layout.operators or len(node.input) < 2 or node.input[1] not in constants:
            continue
        name = node.input[1]
        way = node.op_type, any(a.name == "transB" and a.i for a in node.attribute)
        if first.setdefault(name, way) != way:
            copy = model.graph.initializer.add()
            copy.CopyFrom(constants[name])
            copy.name = node.input[1] = f"{node.output[0]}/omb_weight"


def _raised(model: ModelProto, label: str) -> ModelProto:
    opset = next((e.version for e in model.opset_import if not canonical(e.domain)), OPSET)
    if opset >= OPSET:
        return model
    try:
        if any(next(subgraphs(node), None) is not None for node in model.graph.node):
            raise ValueError(
                "it leaves the nodes of branches and loops in a wrong order."
            )  # the checker does not see it
        raised = version_converter.convert_version(model, OPSET)
        if opset < RESIZE:
            say_where_pixels_lie(raised.graph, opset)
        onnx.checker.check_model(raised, full_check=True)
    except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise UnsupportedModelError(
            f"{label} is of opset {opset}, Q/DQ nodes with a scale for each channel need {OPSET}, and ONNX's converter "
            f"does not get there: {str(error).strip().splitlines()[0]} Export the model with opset {OPSET} or newer."
        ) from error
    return raised


def can_be_written(node: NodeProto, constants: Mapping[str, Any]) -> bool:
    """Whether the writer gets a layer right: a bias is a constant of one dimension, by its name in `constants` with its shape."""
    if node.op_type != "Gemm":
        return True
    if any(a.name in ("alpha", "beta") and a.f != 1 for a in node.attribute):
        return False
    return len(node.input) < 3 or len(constants.get(node.input[2], ())) == 1


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
    magnitudes = {**magnitudes, **{f"{name}{_READ}": value for name, value in magnitudes.items()}}
    constants = {tensor.name for tensor in made.graph.initializer}
    shapes = {tensor.name: tuple(tensor.dims) for tensor in made.graph.initializer}
    nodes = [n for n in made.graph.node if n.op_type in TENSORRT.operators and can_be_written(n, shapes)]
    needed = {node.name: {*node.input[:2], *node.output} - constants - {""} for node in nodes}
    complete = [name for name, tensors in needed.items() if tensors <= magnitudes.keys()]
    if not complete:
        missing = sorted(set().union(*needed.values()) - magnitudes.keys())
        named = f" It has no range for {', '.join(map(repr, missing[:3]))}." if missing else ""
        raise CalibrationTableError(
            f"The calibration table quantizes no layer of {label}: it fits another model, or the model has no "
            f"{', '.join(TENSORRT.operators)}.{named} Calibrate this model."
        )
    written = write_qdq(made, {name: (-m, m) for name, m in magnitudes.items()}, TENSORRT, complete)
    try:
        onnx.checker.check_model(written, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise UnsupportedModelError(
            f"Q/DQ nodes cannot be written into {label}: {str(error).strip().splitlines()[0]} Convert it to float32 and opset 21 first."
        ) from error
    return written
