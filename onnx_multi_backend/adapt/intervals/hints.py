# SPDX-License-Identifier: Apache-2.0
"""What is known of the elements of an integer input, written beside its type in a model of one node."""

from __future__ import annotations

from onnx import TensorProto, ValueInfoProto

from onnx_multi_backend.adapt.intervals.values import SMALL, Value

_MARK = "omb_bits:"
#: Of a constant that is too large to be carried along.
KNOWN = "omb_known"

#: Few, so that equal nodes stay equal.
_BITS = (1, 3, 4, 7, 8, 15, 16, 24, 31)
_SIZE = Value(TensorProto.INT64, -1, SMALL, assumed=True)
_COUNT = _SIZE._replace(low=0)
_ASSUMED = {"size": _SIZE, "count": _COUNT}
_ROUNDED = f"{_MARK}rounded"
_TYPES = frozenset({TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64})


def hint(value: Value | None) -> str:
    """The words for a value; empty where its type says as much."""
    if value is None or value.elem_type not in _TYPES:
        return ""
    if value.rounded and not value.small:
        return _ROUNDED
    if value.low is None or value.high is None:
        return ""
    if value.assumed:
        return f"{_MARK}{'size' if value.low < 0 else 'count'}" if value.in_int32 else ""
    sign = "u" if value.low >= 0 else "s"
    bits = next((b for b in _BITS if value.within(-(2**b) if sign == "s" else 0, 2**b - 1)), None)
    if bits is None or (bits == 31 and sign == "s" and value.elem_type == TensorProto.INT32):
        return ""
    return f"{_MARK}{sign}{bits}"


def as_hinted(value: Value) -> Value:
    """What is left of a value that a hint tells, as far as it is wider: the size of a tensor, or a list of sizes that may have -1."""
    if not value.assumed or not value.in_int32:
        return value
    return (_SIZE if value.low is None or value.low < 0 else _COUNT)._replace(elem_type=value.elem_type)


def read_hint(info: ValueInfoProto) -> Value | None:
    """Undo `hint`; None where there is none."""
    if not info.doc_string.startswith(_MARK):
        return None
    kind, told = info.type.tensor_type.elem_type, info.doc_string.removeprefix(_MARK)
    if info.doc_string == _ROUNDED:
        return Value(kind, rounded=True)
    if told in _ASSUMED:
        return _ASSUMED[told]._replace(elem_type=kind)
    if kind not in _TYPES or told[:1] not in ("s", "u") or not told[1:].isdecimal():
        return None
    bits = int(told[1:])
    return Value(kind, -(2**bits) if told[0] == "s" else 0, 2**bits - 1)
