# SPDX-License-Identifier: Apache-2.0
"""The bounds within which 64 bits shifted to the left, by an amount that is an input, stay within int32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.bounds import Bound
from onnx_multi_backend.adapt.intervals.values import Value

_T = TensorProto
_BITS = 31
_WHY = ", beyond which a result computed from this input overflows"

#: A shift, and what it reads.
Shift = tuple[NodeProto, list[Value]]


def is_shift(node: NodeProto, operands: list[Value]) -> bool:
    """Whether a node shifts 64 bits to the left by an amount that is computed from an input."""
    return (
        node.op_type == "BitShift"
        and len(operands) == 2
        and operands[0].elem_type in (_T.INT64, _T.UINT64)
        and bool(operands[1].sources)
        and any(a.name == "direction" and a.s == b"LEFT" for a in node.attribute)
    )


def held_to_shifts(bounds: Mapping[str, Bound], shifts: Iterable[Shift]) -> dict[str, Bound]:
    """The bounds, lowered for what is shifted and for the amounts, where these are inputs themselves.

    A constant leaves the amount the bits that it does not use; an input gets half of them.
    """
    found = dict(bounds)
    for node, (data, _) in shifts:
        value, amount = node.input
        if amount not in found or (data.sources and value not in found) or data.low is None or data.high is None:
            continue
        used = (_BITS + 1) // 2 if data.sources else int(max(abs(data.low), abs(data.high))).bit_length()
        if used > _BITS:  # refused for the constant
            continue
        _lower(found, amount, _BITS - used)
        if data.sources:
            _lower(found, value, 2**used - 1)
    return found


def _lower(bounds: dict[str, Bound], name: str, most: int) -> None:
    bound = bounds[name]
    if most < bound.high:
        bounds[name] = bound._replace(low=max(bound.low, -most), high=most, why=_WHY)
