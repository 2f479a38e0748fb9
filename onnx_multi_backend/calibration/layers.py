# SPDX-License-Identifier: Apache-2.0
"""The layers of a model that can be quantized, and how much each of them costs in accuracy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from onnx_multi_backend.calibration.batches import read
from onnx_multi_backend.calibration.ranges import Ranges
from onnx_multi_backend.calibration.source import FloatModel
from onnx_multi_backend.engines.ort import errors, quantization
from onnx_multi_backend.engines.ort.qdq import Layout, can_be_written
from onnx_multi_backend.engines.session import RefusedError
from onnx_multi_backend.errors import OptionError, UnsupportedModelError

#: Batches that the sensitivity of layers is measured on.
_BATCHES = 2


@dataclass(frozen=True)
class Layer:
    """A node that can be quantized.

    Attributes
    ----------
    name, op_type : str
    group : str
        What it is timed with: its operator, or ``depthwise Conv``.
    sensitivity : float
        The noise-to-signal ratio of the model's outputs when this layer alone is quantized; the worst output counts.
    """

    name: str
    op_type: str
    group: str
    sensitivity: float = 0.0


def find_layers(model: FloatModel, ranges: Ranges, layout: Layout) -> list[Layer]:
    """The layers that can be quantized, in the model's order."""
    nodes = model.proto.graph.node
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.proto.graph.initializer}
    return [
        Layer(node.name, node.op_type, _group(node, shapes))
        for node in nodes
        if node.op_type in layout.operators
        and can_be_written(node, shapes)
        and all(name in ranges or name in shapes for name in (*node.input[:2], *node.output))
    ]


def excluded(model: FloatModel, given: FloatModel, exclude: Sequence[str]) -> set[str]:
    """The names of the nodes that stay float.

    Parameters
    ----------
    model, given : FloatModel
        The simplified model, whose nodes are returned, and the one that the user knows: ONNX Runtime names a node that it made of
        others ``name/...Fusion``.
    exclude : sequence of str
        Names of nodes, or operators.

    Raises
    ------
    OptionError
        Neither model has such a node or operator.
    """
    nodes = [*model.proto.graph.node, *given.proto.graph.node]
    known = {node.name for node in nodes} | {node.op_type for node in nodes}
    for name in exclude:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            raise OptionError(
                f"exclude names {name!r}, and {model.label} has no such node or operator{'; is it ' if near else '.'}"
                + (f"{' or '.join(map(repr, near))}?" if near else "")
            )
    left = {node.name for node in nodes if node.name and {node.name, node.op_type} & set(exclude)}
    return {
        node.name
        for node in model.proto.graph.node
        if node.op_type in exclude or any(node.name == name or node.name.startswith(f"{name}/") for name in left)
    }


def _group(node: NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> str:
    if node.op_type != "Conv":
        return node.op_type
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    return "depthwise Conv" if groups > 1 and shapes.get(node.input[1], (0,))[0] % groups == 0 else "Conv"


def with_sensitivity(
    layers: Iterable[Layer],
    model: FloatModel,
    write: Callable[[Sequence[str]], ModelProto],
    paths: Sequence[Path],
) -> list[Layer]:
    """Measure each layer's sensitivity: quantize it alone.

    Parameters
    ----------
    write : callable
        Quantizes the nodes of these names.
    paths : sequence of Path
        Batches; the first few are used.
    """
    batches = [batch.feeds for batch in read(paths[:_BATCHES])]
    plain = quantization.session(model.proto)
    outputs = comparable(model)
    expected = [_floats(plain.run(outputs, feeds)) for feeds in batches]
    failures: tuple[type[Exception], ...] = (RefusedError, UnsupportedModelError, *errors.all_errors())
    found = []
    for layer in layers:
        noise = 0.0
        try:
            session = quantization.session(write([layer.name]))
            for right, feeds in zip(expected, batches, strict=True):
                noise = max(noise, _noise(right, _floats(session.run(outputs, feeds))))
        except failures:
            noise = math.inf  # the first to stay float
        found.append(Layer(layer.name, layer.op_type, layer.group, noise))
    return found


def comparable(model: FloatModel, kinds: str = "fiub") -> list[str]:
    """The outputs whose results can be compared: tensors of numbers, of these kinds of numpy's types."""
    return [
        info.name
        for info in model.signature.outputs
        if info.onnx_type.startswith("tensor(") and info.dtype is not None and info.dtype.kind in kinds
    ]


def _floats(outputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(output).astype(np.float64).ravel() for output in outputs]


def _noise(right: Sequence[np.ndarray[Any, Any]], found: Sequence[np.ndarray[Any, Any]]) -> float:
    worst = 0.0
    for a, b in zip(right, found, strict=True):
        if a.shape != b.shape:
            return math.inf
        signal = float(a @ a)
        noise = float((a - b) @ (a - b))
        worst = max(worst, noise / signal if signal > 0 else float(noise > 0))
    return worst
