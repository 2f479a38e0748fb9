# SPDX-License-Identifier: Apache-2.0
"""What comparisons make of bounds, and logic of what comparisons make: a condition may be known before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnx_multi_backend.adapt.intervals.values import BOOL, LIMITS, Value
from onnx_multi_backend.adapt.operation import Made, Operation

FALSE, TRUE = Value(TensorProto.BOOL, 0, 0), Value(TensorProto.BOOL, 1, 1)

COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
#: Many times the step from one float16 to the next, as a share of it.
_ROUNDING = 2.0**-6
LOGIC = frozenset({"And", "Not", "Or"})


def compared(done: Operation) -> Made:
    """One of `COMPARISONS`."""
    if len(done.operands) != 2:
        return Made([BOOL])
    a, b = done.operands if done.kind.startswith("Less") else reversed(done.operands)
    low, high, least, most = a.low, a.high, b.low, b.high
    if low is None or high is None or least is None or most is None or not (_is_sure(a) and _is_sure(b)):
        return Made([BOOL])
    if done.kind == "Equal":
        slack = _slack(a, b)
        apart = high + slack < least or most + slack < low
        return Made([_either(not slack and low == high == least == most, apart)])
    if (slack := _slack(a, b)) or not done.kind.endswith("OrEqual"):
        return Made([_either(high + slack < least, low >= most + slack)])
    return Made([_either(high <= least, low > most)])


def combined(done: Operation) -> Made:
    """One of `LOGIC`."""
    read = done.operands
    if done.kind == "Not":
        return Made([_either(_all(read, FALSE), _all(read, TRUE))])
    deciding, other = (FALSE, TRUE) if done.kind == "And" else (TRUE, FALSE)
    if any(value == deciding for value in read):
        return Made([deciding])
    return Made([other if _all(read, other) else BOOL])


def truth(x: Value) -> Value:
    """What a Cast to BOOL makes."""
    if x.low is None or x.high is None or not _is_sure(x):
        return BOOL
    slack = _slack(x)
    return _either(x.low > slack or x.high < -slack, not slack and x.low == x.high == 0)


def _slack(*values: Value) -> float:
    """How far bounds may be off that floating-point numbers were rounded on the way to."""
    if all(value.elem_type in LIMITS and not value.rounded for value in values):
        return 0
    return 1 + max(abs(end or 0) for value in values for end in (value.low, value.high)) * _ROUNDING


def _is_sure(value: Value) -> bool:
    """Whether the bounds hold whatever a model is given."""
    return not value.assumed and not value.sources


def _all(values: Sequence[Value], what: Value) -> bool:
    return bool(values) and all(value == what for value in values)


def _either(is_true: bool, is_false: bool) -> Value:
    return TRUE if is_true else FALSE if is_false else BOOL
