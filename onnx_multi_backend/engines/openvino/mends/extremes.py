# SPDX-License-Identifier: Apache-2.0
"""The largest and the smallest of floating-point numbers in a read model: OpenVINO skips NaN, and begins with a finite number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.engines.openvino import runtime

#: The largest finite number of each type.
_LARGEST: Mapping[str, float] = {
    "f32": float.fromhex("0x1.fffffep127"),
    "f64": float.fromhex("0x1.fffffffffffffp1023"),
    "f16": 65504.0,
    "bf16": float.fromhex("0x1.fep127"),
}

#: ONNX's operators that are mended here.
GUARDED = frozenset({"ReduceMax", "ReduceMin"})


def guard(op: Any) -> bool:
    """Put in a reduction's place what is NaN where it reads one, and infinite where it reads infinities alone, or nothing.

    Half of a finite number does not reach the largest one, so that the extreme of the halves tells an infinity from it.
    The same as the rule `special_values` writes for OpenVINO's execution providers. What the frontend writes in place of another
    operator has no name of the model, and is left: ReduceLogSumExp needs the finite number.
    """
    x, axes = op.input_value(0), op.input_value(1)
    kind = x.get_element_type()
    if not kind.is_real() or not op.output(0).get_names():
        return False
    ov = runtime.load()
    ops, keep, largest = ov.opset8, op.get_attributes()["keep_dims"], _LARGEST[kind.get_type_name()]
    below = op.get_type_name() == "ReduceMax"
    extreme = ops.reduce_max if below else ops.reduce_min
    halves = extreme(ops.multiply(x, ops.constant(0.5, kind)), axes, keep)
    limit = ops.constant(-largest if below else largest, kind)
    finite = ops.less(limit, halves) if below else ops.less(halves, limit)
    result = ops.select(finite, extreme(x, axes, keep), _special(-math.inf if below else math.inf, kind))
    nan = ops.reduce_max(ops.convert(ops.logical_not(ops.equal(x, x)), "f32"), axes, keep)
    any_nan = ops.less(ops.constant(0.5, ov.Type.f32), nan)
    guarded = ops.select(any_nan, _special(math.nan, kind), result)
    guarded.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, guarded)
    return True


def _special(value: float, kind: Any) -> Any:
    """OpenVINO makes no infinite constant of 16 bits and clamps one of float64, but not one that is cast to these."""
    ov = runtime.load()
    constant = ov.opset8.constant(value, ov.Type.f32)
    return constant if kind == ov.Type.f32 else ov.opset8.convert(constant, kind.get_type_name())
