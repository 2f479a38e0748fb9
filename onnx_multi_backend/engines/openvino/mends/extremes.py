# SPDX-License-Identifier: Apache-2.0
"""The largest and the smallest of floating-point numbers in a read model: OpenVINO skips NaN, and begins with a finite number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.operators.extremes import guarded
from onnx_multi_backend.engines.openvino import runtime

#: OpenVINO's names of the types.
_KINDS: Mapping[str, int] = {
    "f32": TensorProto.FLOAT,
    "f64": TensorProto.DOUBLE,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}

#: OpenVINO's names of the operators.
_OPERATORS: Mapping[str, str] = {"Less": "less", "Mul": "multiply", "Not": "logical_not", "Where": "select"}

#: ONNX's operators that are mended here.
GUARDED = frozenset({"ReduceMax", "ReduceMin"})


class _OpenvinoNodes:
    """Writes nodes in place of a reduction of a read model."""

    def __init__(self, op: Any) -> None:
        self._op = op
        self._ops = runtime.load().opset8

    def write(self, op_type: str, *inputs: Any) -> Any:
        return getattr(self._ops, _OPERATORS[op_type])(*inputs)

    def constant(self, value: float, kind: int) -> Any:
        return self._ops.constant(value, getattr(runtime.load().Type, _NAMES[kind]))

    def special(self, value: float) -> Any:
        """OpenVINO makes no infinite constant of 16 bits and clamps one of float64, but not one that is cast to these."""
        kind = self._op.input_value(0).get_element_type().get_type_name()
        constant = self.constant(value, TensorProto.FLOAT)
        return constant if kind == "f32" else self._ops.convert(constant, kind)

    def reduced(self, x: Any) -> Any:
        extreme = self._ops.reduce_max if self._op.get_type_name() == "ReduceMax" else self._ops.reduce_min
        return extreme(x, self._op.input_value(1), self._op.get_attributes()["keep_dims"])

    def is_number(self, x: Any) -> Any:
        return self._ops.equal(x, x)

    def most(self, flags: Any) -> Any:
        counts = self._ops.convert(flags, "f32")
        return self._ops.reduce_max(counts, self._op.input_value(1), self._op.get_attributes()["keep_dims"])


def guard(op: Any) -> bool:
    """Put in a reduction's place what is right for NaN and infinities.

    What the frontend writes in place of another operator has no name of the model, and stays as it is: ReduceLogSumExp needs the finite
    number. Finite constants need no guard, beside which OpenVINO (2026.4) refuses them in bfloat16 where an If reads the result.
    """
    x = op.input_value(0)
    kind = x.get_element_type()
    if not kind.is_real() or not op.output(0).get_names() or _are_finite(x.get_node()):
        return False
    largest = op.get_type_name() == "ReduceMax"
    result = guarded(_OpenvinoNodes(op), x, _KINDS[kind.get_type_name()], largest=largest)
    result.set_friendly_name(op.get_friendly_name())
    runtime.load().utils.replace_node(op, result)
    return True


def _are_finite(op: Any) -> bool:
    """Whether a layer is a constant of finite numbers, and of one at least."""
    if op.get_type_name() != "Constant":
        return False
    numbers = op.get_data(dtype=np.float32)
    return bool(numbers.size) and bool(np.isfinite(numbers).all())
