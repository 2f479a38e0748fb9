# SPDX-License-Identifier: Apache-2.0
"""Operators on integers that ONNX Runtime's CPU kernels compute wrongly.

Before 1.32 they compare two numbers of int64 whose upper 32 bits are equal by their lower 32 bits, taken as signed: 2**31 counts as
less than 0. ``Less``, ``Greater`` and ``Equal`` are right. Measured over the whole range; with numbers that int32 holds, all
are right.

Sums, products and powers are computed in float64, and limited to the type's range, and Shrink is computed in float32 (1.24 to 1.32).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.intervals.values import MULTIPLIED, NO_NUMBERS, Value
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.host.applies import When, applies

_T = TensorProto
#: The releases whose kernels compare wrongly.
_COMPARES: When = {"onnxruntime": "<1.32"}
_OPERATORS = frozenset({"Clip", "Max", "Min", "ReduceMax", "ReduceMin", "Relu", "Sign"})
_EXACT: Mapping[int, int] = {_T.INT32: 2**31 - 1, _T.INT64: 2**53}
#: How many elements a sum has where that is not known.
_MOST_SUMMED = 2**22
_REDUCTIONS = ("ReduceMax", "ReduceMin")
#: What is computed in float64.
IN_FLOAT64 = frozenset({"Pow", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSum", "ReduceSumSquare"})
#: What is computed in float32, of types that hold more, and the numbers up to which that is exact.
_IN_FLOAT32 = frozenset({"Shrink"})
_WIDE = (_T.INT32, _T.UINT32, _T.INT64)
_EXACT_IN_FLOAT32 = 2**24 - 1
#: Of which `may_have_defect` may be true.
OPERATORS = _OPERATORS | IN_FLOAT64 | _IN_FLOAT32


def may_have_defect(node: NodeProto, read: list[Value]) -> bool:
    """Whether `find` may know something of a node that reads these values."""
    if node.op_type in IN_FLOAT64:
        return may_be_computed_in_float64(node, read)
    if node.op_type in _IN_FLOAT32:
        return any(map(_is_rounded, read))
    if node.op_type not in _OPERATORS or not any(v.elem_type == _T.INT64 and not v.in_int32 for v in read):
        return False
    return applies(_COMPARES)


def computed_in_float64(site: Site) -> Defect | None:
    """What is wrong with a sum, product or power of integers. Source: measured, on the CPU and on CUDA."""
    if not site.is_(*IN_FLOAT64):
        return None
    if site.op_type == "ReduceL2":
        from onnx_multi_backend.adapt.rules.reduce_functions import reduces_nothing

        if not reduces_nothing(site):  # how a root is rounded is left open
            return None
    count = _exponent(site) if site.op_type == "Pow" else _count(site)
    if not count or _is_exact(site.op_type, site.value(site.input(0)), count):
        return None
    return Defect("integers are computed in float64, and the result is limited to the type's range")


def may_be_computed_in_float64(node: NodeProto, read: list[Value]) -> bool:
    """Whether `computed_in_float64` may know something of a node that reads these values."""
    return node.op_type in IN_FLOAT64 and bool(read) and not _is_exact(node.op_type, read[0], _MOST_SUMMED)


def find(site: Site) -> Defect | None:
    """What is wrong with a node on integers; None where nothing is known."""
    if site.is_(*IN_FLOAT64):
        return computed_in_float64(site)
    if site.is_(*_IN_FLOAT32):
        return (
            Defect("integers are computed in float32", wrong=True) if _is_rounded(site.value(site.input(0))) else None
        )
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
    words = "of two numbers whose upper halves are equal, the lower halves are compared as signed"
    return Defect(words, wrong=True, wide=site.op_type in _REDUCTIONS)


def _is_rounded(x: Value) -> bool:
    return x.elem_type in _WIDE and not x.assumed and not x.within(-_EXACT_IN_FLOAT32, _EXACT_IN_FLOAT32)


def _is_lone(shape: Sequence[int | None] | None) -> bool:
    """Whether a tensor has one element, which is compared with no other."""
    return shape is not None and all(size == 1 for size in shape)


def _is_exact(op_type: str, x: Value, count: int) -> bool:
    """Whether so many numbers come to one that float64 and the type hold; of Pow, so many factors."""
    limit = _EXACT.get(x.elem_type)
    if limit is None or x.assumed:
        return True
    most = _largest_of(op_type, limit, count)
    return x.within(-most, most)


def _largest_of(op_type: str, limit: int, count: int) -> int:
    """The largest number of which so many come to no more than a limit."""
    if op_type in ("Pow", "ReduceProd"):
        return int(limit ** (1 / count)) if count < limit.bit_length() else 1
    return math.isqrt(limit // count) if op_type == "ReduceSumSquare" else limit // count


def _exponent(site: Site) -> int:
    """The constant exponent that is written as a product; 0 for another."""
    exponent = site.constant(site.input(1))
    if exponent is None or site.elem_type(site.input(1)) in NO_NUMBERS or exponent.size != 1:
        return 0
    if not 1 < exponent.item() <= MULTIPLIED or exponent.item() % 1:
        return 0
    return int(exponent.item())


def _count(site: Site) -> int:
    shape = site.shape(site.input(0))
    return (
        _MOST_SUMMED if shape is None else math.prod(size or (1 if size == 0 else _MOST_SUMMED) for size in shape) or 1
    )
