# SPDX-License-Identifier: Apache-2.0
"""The layers of a model that can be quantized, and how much each of them costs in accuracy."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from onnx_multi_backend.calibration.batches import read
from onnx_multi_backend.calibration.ranges import Ranges
from onnx_multi_backend.calibration.source import FloatModel
from onnx_multi_backend.engines.ort import quantization
from onnx_multi_backend.engines.ort.qdq import Layout
from onnx_multi_backend.errors import OptionError

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
        The noise in the model's outputs when this layer alone is quantized, by their signal; the worst output counts.
    """

    name: str
    op_type: str
    group: str
    sensitivity: float = 0.0


def find_layers(model: FloatModel, ranges: Ranges, layout: Layout, exclude: Sequence[str]) -> list[Layer]:
    """The layers to quantize, in the model's order.

    Parameters
    ----------
    model : FloatModel
    ranges : Ranges
    layout : Layout
    exclude : sequence of str
        Names of nodes, or operators, that stay float.

    Raises
    ------
    OptionError
        `exclude` names what is not in the model.
    """
    nodes = list(model.proto.graph.node)
    known = {node.name for node in nodes} | {node.op_type for node in nodes}
    for name in exclude:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            raise OptionError(
                f"exclude names {name!r}, and {model.label} has no such node or operator{'; is it ' if near else '.'}"
                + (f"{' or '.join(map(repr, near))}?" if near else "")
            )
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.proto.graph.initializer}
    return [
        Layer(node.name, node.op_type, _group(node, shapes))
        for node in nodes
        if node.op_type in layout.operators
        and not {node.name, node.op_type} & set(exclude)
        and all(name in ranges or name in shapes for name in (*node.input[:2], *node.output))
    ]


def _group(node: NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> str:
    if node.op_type != "Conv":
        return node.op_type
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    return "depthwise Conv" if groups > 1 and shapes.get(node.input[1], (0,))[0] % groups == 0 else "Conv"


def with_sensitivity(
    layers: Sequence[Layer],
    model: FloatModel,
    write: Callable[[Sequence[str]], ModelProto],
    paths: Sequence[Path],
    step: Callable[[], None],
) -> list[Layer]:
    """Measure each layer's sensitivity: quantize it alone.

    Parameters
    ----------
    write : callable
        Quantizes the nodes of these names.
    paths : sequence of Path
        Batches; the first few are used.
    step : callable
        Called after each layer.
    """
    batches = [batch.feeds for batch in read(paths[:_BATCHES])]
    plain = quantization.session(model.proto)
    expected = [_floats(plain.run(None, feeds)) for feeds in batches]
    found = []
    for layer in layers:
        session = quantization.session(write([layer.name]))
        noise = max(
            (_noise(right, _floats(session.run(None, feeds))) for right, feeds in zip(expected, batches, strict=True)),
            default=0.0,
        )
        found.append(Layer(layer.name, layer.op_type, layer.group, noise))
        step()
    return found


def _floats(outputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    arrays = [np.asarray(output) for output in outputs]
    return [array.astype(np.float64).ravel() for array in arrays if array.dtype.kind in "fiu"]


def _noise(right: Sequence[np.ndarray[Any, Any]], found: Sequence[np.ndarray[Any, Any]]) -> float:
    worst = 0.0
    for a, b in zip(right, found, strict=True):
        if a.shape != b.shape:
            return float("inf")
        signal = float(a @ a)
        noise = float((a - b) @ (a - b))
        worst = max(worst, noise / signal if signal > 0 else float(noise > 0))
    return worst
