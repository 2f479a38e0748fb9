# SPDX-License-Identifier: Apache-2.0
"""The layers of a Q/DQ model whose results differ from those of its Q/DQ nodes as they stand, and by how much."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, numpy_helper

from onnx_multi_backend import option_words
from onnx_multi_backend.engines.byte_sums import byte_products
from onnx_multi_backend.engines.ort import quantization
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.running.prepared import PreparedModel

_SATURATION = "sums of two 8-bit products saturate on processors without VNNI"


@dataclass(frozen=True)
class NodeDisagreement:
    """A layer whose results differ from those of its Q/DQ nodes as they stand.

    Attributes
    ----------
    node, op_type : str
    steps : float
        How many steps of its output's quantization the largest difference is.
    cause, cure : str
        Empty where it is not known.
    """

    node: str
    op_type: str
    steps: float
    cause: str = ""
    cure: str = ""


Prepare = Callable[[ModelProto], PreparedModel]


@dataclass(frozen=True)
class QuantizedLayer:
    """A node that reads dequantized values."""

    node: NodeProto
    inputs: tuple[str, ...]
    output: str


def quantized_layers(proto: ModelProto) -> list[QuantizedLayer]:
    """Each node whose inputs come out of DequantizeLinear, from quantized values to quantized values where they are."""
    makers = {name: node for node in proto.graph.node for name in node.output}
    readers: dict[str, list[NodeProto]] = {}
    for node in proto.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {tensor.name for tensor in proto.graph.initializer}
    found = []
    for node in proto.graph.node:
        read = [makers.get(name) for name in node.input]
        given = [maker for maker in read if maker is not None and maker.op_type == "DequantizeLinear"]
        if node.op_type == "QuantizeLinear" or len(given) < 2:
            continue
        inputs = tuple(maker.input[0] for maker in given if maker.input[0] not in constants)
        if not inputs or any(m is None and n not in constants for m, n in zip(read, node.input, strict=True) if n):
            continue
        after = readers.get(node.output[0], [])
        last = after[0].output[0] if len(after) == 1 and after[0].op_type == "QuantizeLinear" else node.output[0]
        found.append(QuantizedLayer(node, inputs, last))
    return found


def disagreeing(
    proto: ModelProto, layers: Sequence[QuantizedLayer], feeds: Mapping[str, Any], setting: str, prepare: Prepare
) -> tuple[NodeDisagreement, ...]:
    """Run each layer by itself, on what the Q/DQ nodes as they stand give it."""
    wanted = list(dict.fromkeys(itertools.chain.from_iterable((*layer.inputs, layer.output) for layer in layers)))
    made = ModelProto()
    made.CopyFrom(proto)
    known = {value.name for value in (*made.graph.output, *made.graph.input)}
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in known)
    outputs = [name for name in wanted if name not in {v.name for v in proto.graph.input}]
    values = dict(zip(outputs, quantization.session(made, optimized=False).run(outputs, dict(feeds)), strict=True))
    values.update(feeds)
    inferred = onnx.shape_inference.infer_shapes(proto)
    found = []
    for layer in layers:
        single = onnx.utils.Extractor(inferred).extract_model(list(dict.fromkeys(layer.inputs)), [layer.output])
        given = {name: values[name] for name in dict.fromkeys(layer.inputs)}
        try:
            result = prepare(single).run(given)[0]
        except OnnxMultiBackendError:
            continue  # by itself it is refused; in the model it was not
        step = 1.0 if values[layer.output].dtype.kind in "iu" else last_step(proto, layer.node.output[0])
        steps = difference(values[layer.output], result, step)
        if steps > 1:
            cause, cure = _cause(single, given, values[layer.output], step, setting)
            found.append(
                NodeDisagreement(layer.node.name or layer.node.output[0], layer.node.op_type, steps, cause, cure)
            )
    return tuple(found)


def _cause(
    single: ModelProto, given: Mapping[str, Any], right: np.ndarray[Any, Any], step: float, setting: str
) -> tuple[str, str]:
    if not byte_products.may_saturate(Contents(single)):
        return "", ""
    if not setting.startswith("OrtCpu"):
        return f"probably {_SATURATION}", 'Quantize with target="portable"'
    exact = get_preset("OrtCpu").prepare(single, cache_dir=False)
    if difference(right, exact.run(given)[0], step) > 1:
        return "", ""
    return _SATURATION, _cure()


def last_step(proto: ModelProto, output: str) -> float:
    """The scale of the last quantization before an output; for none, the smallest difference between float32 numbers of size 1."""
    step = quantization_before(proto, output)
    return float(np.finfo(np.float32).eps) if step is None else step


def quantization_before(proto: ModelProto, output: str) -> float | None:
    """The scale of the last quantization before an output; None where there is none."""
    makers = {name: node for node in proto.graph.node for name in node.output}
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    todo, seen = [output], set()
    while todo:
        node = makers.get(todo.pop(0))
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.op_type == "DequantizeLinear" and node.input[1] in constants:
            quantizer = makers.get(node.input[0])
            if (node.input[0] if quantizer is None else quantizer.input[0]) in constants:
                continue  # a weight or bias: layers that stay float may share it
            return float(numpy_helper.to_array(constants[node.input[1]]).max())
        todo += [name for name in node.input if name]
    return None


def difference(right: Any, found: Any, step: float) -> float:
    a, b = np.asarray(right), np.asarray(found)
    if a.shape != b.shape:
        return math.inf
    if a.dtype.kind not in "fiub" or not a.size:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    apart = np.abs(a[finite] - b[finite]).max(initial=0.0) / step
    return float(apart) - 1e-3 if apart > 1e-3 else 0.0  # what float32 itself rounds


def _cure() -> str:
    """ONNX Runtime then multiplies 8-bit numbers in 16 bits, without saturation."""
    return (
        f"With {option_words.given('adapt', True)} the preset writes the weights as uint8. For ONNX Runtime alone set "
        f'"session.x64quantprecision", or quantize with {option_words.given("target", "portable")}'
    )
