# SPDX-License-Identifier: Apache-2.0
"""The small models that hold a backend to the protocol, each made anew so that no backend can spoil it for another.

IR 7 and opset 13 are old enough that every backend of today reads them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
from numpy.typing import NDArray
from onnx import ModelProto

UNKNOWN_DOMAIN = "an.unknown.domain"
UNKNOWN_OPERATOR = "NoSuchOperator"

Array = NDArray[np.float32]

_INVALID = {
    "that reads a tensor which nothing makes": "(float[2, 3] x) => (float[2, 3] y) { y = Relu(missing) }",
    "with an operator that ONNX does not have": f"(float[2, 3] x) => (float[2, 3] y) {{ y = {UNKNOWN_OPERATOR}(x) }}",
    "whose node has an input too many": "(float[2, 3] x) => (float[2, 3] y) { y = Relu(x, x) }",
    "whose node lacks a required attribute": "(float[2, 3] x) => (float[4, 3] y) { y = Concat(x, x) }",
}


def example_inputs() -> list[Array]:
    """Two different arrays of shape (2, 3)."""
    a, b = [[1, -2, 3], [-4, 5, -6]], [[7, 8, -9], [-10, 11, 12]]
    return [np.array(a, np.float32), np.array(b, np.float32)]


def difference() -> ModelProto:
    """Y = a - b, which distinguishes the inputs."""
    return _parse("(float[2, 3] a, float[2, 3] b) => (float[2, 3] y) { y = Sub(a, b) }")


def times(factor: int) -> ModelProto:
    """Y = x * factor, with the factor in the model."""
    return _parse(f"(float[2, 3] x) => (float[2, 3] y) <float[1] w = {{{factor}}}> {{ y = Mul(x, w) }}")


def many_outputs() -> ModelProto:
    """Outputs of several types and ranks; one of the names is not an identifier."""
    return _parse(
        """(float[2, 3] a, float[2, 3] b) =>
             (float[2, 3] difference, float "largest:0", bool[2, 3] greater, int64[2, 1] index) {
           difference = Sub(a, b)
           "largest:0" = ReduceMax <keepdims = 0> (a)
           greater = Greater(a, b)
           index = ArgMax <axis = 1> (a)
        }"""
    )


def many_outputs_expected() -> dict[str, NDArray[Any]]:
    """What `many_outputs` computes of `example_inputs`, by name and in order."""
    a, b = example_inputs()
    return {
        "difference": a - b,
        "largest:0": np.array(a.max()),
        "greater": a > b,
        "index": a.argmax(axis=1, keepdims=True),
    }


def rearranged() -> ModelProto:
    """Outputs that an engine is tempted to return as views of its input or of a buffer of its own."""
    return _parse(
        """(float[2, 3] x) => (float[2, 3] positive, float[6] flat) <int64[1] all = {-1}> {
           positive = Relu(x)
           flat = Reshape(x, all)
        }"""
    )


def unknown() -> ModelProto:
    """A valid model whose only operator no backend has."""
    return _parse(
        f"(float[2, 3] x) => (float[2, 3] y) {{ y = {UNKNOWN_DOMAIN}.{UNKNOWN_OPERATOR}(x) }}", UNKNOWN_DOMAIN
    )


def invalid() -> dict[str, ModelProto]:
    """Models that ONNX's checker refuses, by what is wrong with them."""
    return {f"a model {wrong}": _parse(text) for wrong, text in _INVALID.items()}


def _parse(text: str, domain: str = "") -> ModelProto:
    imports = '"": 13' + (f', "{domain}": 1' if domain else "")
    return onnx.parser.parse_model(f"<ir_version: 7, opset_import: [{imports}]> tiny {text}")
