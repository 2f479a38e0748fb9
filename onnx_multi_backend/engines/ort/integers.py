# SPDX-License-Identifier: Apache-2.0
"""Operators on int64 that ONNX Runtime's CPU kernels compute wrongly.

Before 1.32 they compare two numbers whose upper 32 bits are equal by their lower 32 bits, taken as signed: 2**31 counts as
less than 0. ``Less``, ``Greater`` and ``Equal`` are right. Measured over the whole range; with numbers that int32 holds, all
are right.

ReduceSum adds in float64, and limits the result to the type's range (1.24 to 1.32).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.adapt.values import Value
from onnx_multi_backend.host.applies import When, applies

_T = TensorProto
#: The releases whose kernels compare wrongly.
_COMPARES: When = {"onnxruntime": "<1.32"}
_OPERATORS = frozenset({"Clip", "Max", "Min", "ReduceMax", "ReduceMin", "Relu", "Sign"})
_EXACT: Mapping[int, int] = {_T.INT32: 2**31 - 1, _T.INT64: 2**53}
#: How many elements a sum has where that is not known.
_MOST_SUMMED = 2**22
_REDUCTIONS = ("ReduceMax", "ReduceMin")
#: Of which `may_have_defect` may be true.
OPERATORS = _OPERATORS | {"ReduceSum"}


def may_have_defect(node: NodeProto, read: list[Value]) -> bool:
    """Whether `find` may know something of a node that reads these values."""
    if node.op_type == "ReduceSum":
        return bool(read) and not _sums_exactly(read[0], _MOST_SUMMED)
    if node.op_type not in _OPERATORS or not any(v.elem_type == _T.INT64 and not v.in_int32 for v in read):
        return False
    return applies(_COMPARES)


def find(site: Site) -> Defect | None:
    """What is wrong with a node on int64; None where nothing is known."""
    if site.is_("ReduceSum"):
        exact = _sums_exactly(site.value(site.input(0)), _count(site))
        return None if exact else Defect("integers are added in float64, and the sum is limited to the type's range")
    if site.domain or site.op_type not in _OPERATORS or GUARDED in site.node.name:
        return None
    read = [name for name in site.node.input if name]
    if not read or site.elem_type(read[0]) != _T.INT64:
        return None
    if all(site.value(name).in_int32 for name in (read[:1] if site.op_type in _REDUCTIONS else read)):
        return None
    if site.op_type in _REDUCTIONS and _is_lone(site.shape(read[0])):
        return None
    if not applies(_COMPARES):
        return None
    return Defect("of two numbers whose upper halves are equal, the lower halves are compared as signed", wrong=True)


def _is_lone(shape: Sequence[int | None] | None) -> bool:
    """Whether a tensor has one element, which is compared with no other."""
    return shape is not None and all(size == 1 for size in shape)


def _sums_exactly(x: Value, count: int) -> bool:
    limit = _EXACT.get(x.elem_type)
    return limit is None or x.assumed or x.within(-limit // count, limit // count)


def _count(site: Site) -> int:
    shape = site.shape(site.input(0))
    return (
        _MOST_SUMMED if shape is None else math.prod(size or (1 if size == 0 else _MOST_SUMMED) for size in shape) or 1
    )
