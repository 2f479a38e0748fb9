# SPDX-License-Identifier: Apache-2.0
"""The patterns: ``floats.txt``, ``quantized.txt`` and ``newer.txt``, graphs in ONNX's text format.

A value that is declared between the angle brackets, and that no node makes, is a constant whose elements are drawn.
"""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper

#: The files, and their opsets: 17 is the last one that has the axes of reductions as attributes.
_FILES = {"floats.txt": 17, "quantized.txt": 17, "newer.txt": 23}
#: What scales are called, in patterns.
SCALES = ("sx", "sy", "sw", "scales")
#: Numbers for them, many of which cancel each other out.
_NUMBERS = (1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01)


class Pattern(NamedTuple):
    """A pattern.

    Attributes
    ----------
    name : str
    text : str
        Of the graph.
    quantized : bool
    opset : int
    """

    name: str
    text: str
    quantized: bool
    opset: int


@functools.cache
def patterns() -> tuple[Pattern, ...]:
    """All of them."""
    found = []
    for file, opset in _FILES.items():
        for block in (Path(__file__).parent / file).read_text().split("\n\n"):
            title, _, text = block.partition("\n")
            found.append(Pattern(title.removeprefix("# "), text, file == "quantized.txt", opset))
    return tuple(found)


def drawn(pattern: Pattern, rng: random.Random) -> ModelProto:
    """A model of a pattern, its constants drawn."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {pattern.opset}]> g {pattern.text}')
    graph = model.graph
    numbers = np.random.default_rng(rng.getrandbits(32))
    made = {name for node in graph.node for name in node.output}
    for value in graph.value_info:
        if value.name not in made:
            graph.initializer.append(_constant(value, numbers))
    del graph.value_info[:]
    for value in graph.output:  # what a change makes of it is not known
        value.type.tensor_type.ClearField("shape")
    if pattern.quantized:
        _scale(model, rng)
    return model


def _constant(value: onnx.ValueInfoProto, numbers: np.random.Generator) -> TensorProto:
    dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    if value.type.tensor_type.elem_type == TensorProto.INT8:
        array = numbers.integers(-50, 51, dims).astype(np.int8)
    elif value.name == "scales":
        array = numbers.uniform(0.01, 0.04, dims).astype(np.float32)
    else:
        array = (numbers.standard_normal(dims) / 2).astype(np.float32)
    return numpy_helper.from_array(array, value.name)


def _scale(model: ModelProto, rng: random.Random) -> None:
    """Draw the scales, and whether activations are of int8 or uint8."""
    unsigned = rng.random() < 0.5
    for tensor in model.graph.initializer:
        if tensor.name in SCALES[:3] and rng.random() < 0.75:
            tensor.CopyFrom(numpy_helper.from_array(np.float32(rng.choice(_NUMBERS)), tensor.name))
        elif tensor.name in ("zx", "zy") and unsigned:
            tensor.CopyFrom(numpy_helper.from_array(np.uint8(128), tensor.name))
