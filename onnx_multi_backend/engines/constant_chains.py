# SPDX-License-Identifier: Apache-2.0
"""What comes of constants that an engine joins beforehand, in their type: whether it holds that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.models.tensors import is_whole

_FLOAT = np.finfo(np.float32)
_HALF = np.finfo(np.float16)
#: The smallest normal and the largest number; float64 is computed in float32.
LIMITS: Mapping[int, tuple[float, float]] = {
    TensorProto.FLOAT16: (float(_HALF.smallest_normal), float(_HALF.max)),
    TensorProto.FLOAT: (float(_FLOAT.smallest_normal), float(_FLOAT.max)),
    TensorProto.DOUBLE: (float(_FLOAT.smallest_normal), float(_FLOAT.max)),
}
#: Operators that add a constant to their data.
SHIFTING = frozenset({"Add", "Sub"})
#: Constants of more bytes are not looked at, and taken for ones: weights are not as large or as small as matters here.
_LARGE = 1 << 16


class Chain(NamedTuple):
    """The constants that would be joined to the next one: the largest elements of their factor and of their term."""

    factor: float = 1.0
    term: float = 0.0

    def before(self, other: Chain) -> Chain:
        """Both, the other one behind."""
        return Chain(self.factor * other.factor, self.term * other.factor + other.term)

    def is_held(self, least: float, most: float) -> bool:
        """Whether a type of these limits holds it."""
        return (not self.factor or least <= self.factor <= most) and self.term <= most


def chain_of(node: NodeProto, data: int, constants: Mapping[str, TensorProto]) -> Chain:
    """What a node itself does to its data."""
    given = [constants[name] for place, name in enumerate(node.input) if name and place != data]
    if node.op_type == "BatchNormalization" and len(given) == 4:
        epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
        return _normalization(given, epsilon)
    if not given:  # as of a model that is not valid
        return Chain()
    first = _largest(given[0], inverse=node.op_type == "Div")
    if node.op_type in SHIFTING:
        return Chain(term=first)
    return Chain(first, sum(map(_largest, given[1:])))


def _normalization(given: Sequence[TensorProto], epsilon: float) -> Chain:
    scale, bias, mean, variance = map(_array, given)
    if not scale.size == bias.size == mean.size == variance.size:
        return Chain()
    with np.errstate(all="ignore"):
        factors = scale / np.sqrt(variance.astype(np.float64) + epsilon)
        return Chain(_largest_of(factors), _largest_of(bias - mean * factors))


def _largest(tensor: TensorProto, *, inverse: bool = False) -> float:
    """The largest size of a constant's elements, or of their reciprocals."""
    numbers = _array(tensor)
    if not inverse:
        return _largest_of(numbers)
    with np.errstate(all="ignore"):
        return _largest_of(1 / numbers[numbers != 0].astype(np.float64))


def _array(tensor: TensorProto) -> np.ndarray[Any, Any]:
    """A constant's elements in a row; 1 for those that are not looked at."""
    if tensor.data_type == TensorProto.FLOAT:  # without onnx's function, which takes longer than the elements
        data, listed = tensor.raw_data, tensor.float_data
        if 0 < len(data) <= _LARGE and len(data) % 4 == 0:
            return np.frombuffer(data, "<f4")
        if 0 < len(listed) <= _LARGE // 4:
            return np.asarray(listed, np.float32)
    if tensor.data_type not in LIMITS or tensor.ByteSize() > _LARGE or not is_whole(tensor):
        return np.ones(1)
    return numpy_helper.to_array(tensor).astype(np.float64).ravel()


def _largest_of(numbers: np.ndarray[Any, Any]) -> float:
    """The largest size of a finite element; 1 where there is none."""
    if numbers.size < 2:
        number = abs(numbers.item()) if numbers.size else 1.0
        return number if math.isfinite(number) else 1.0
    most = max(abs(float(numbers.max())), abs(float(numbers.min())))  # NaN where an element is
    if math.isfinite(most):
        return most
    sizes = np.abs(numbers[np.isfinite(numbers)])
    return float(sizes.max()) if sizes.size else 1.0
