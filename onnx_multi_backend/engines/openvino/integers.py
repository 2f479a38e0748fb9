# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO's CPU plugin (2025.4, 2026.4) makes of integers.

It computes int64, uint64 and uint32 in int32, and a constant beyond int32 becomes its largest or lowest number; int16 and uint16 in int32
without cutting results back. It limits results of int8 and uint8 to their range, and computes some operators on int32 in float32,
comparisons among them. Measured over the whole range of each type, of near numbers too. Sums, differences, products, Max, Min, Abs
and bitwise operators are exact and wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.intervals.beyond_int32 import SATURATES
from onnx_multi_backend.adapt.intervals.hints import as_hinted
from onnx_multi_backend.adapt.intervals.values import LIMITS, SMALL, Value, arithmetic
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.narrow_integers import cast_to
from onnx_multi_backend.adapt.site import INTEGER_BITS, Site

_T = TensorProto
_EIGHT, _SIXTEEN = frozenset({_T.INT8, _T.UINT8}), frozenset({_T.INT16, _T.UINT16})
_WIDE = frozenset({_T.INT32, _T.INT64, _T.UINT32, _T.UINT64})
_NARROW = _EIGHT | _SIXTEEN
_CUT: Mapping[int, tuple[int, int]] = {
    _T.INT4: (-8, 7),
    _T.UINT4: (0, 15),
    _T.INT16: (-(2**15), 2**15 - 1),
    _T.UINT16: (0, 2**16 - 1),
}
_FLOATS = frozenset({_T.FLOAT, _T.FLOAT16, _T.BFLOAT16, _T.DOUBLE})

#: Operators whose results are limited (8 bits) or not cut back (16 bits).
_LIMITED: Mapping[str, frozenset[int]] = {
    **dict.fromkeys(("Abs", "Neg"), frozenset({_T.INT8, _T.INT16})),
    **dict.fromkeys(("Add", "Sub", "Mul"), _NARROW),
    "Div": _EIGHT,
    "BitwiseNot": frozenset({_T.UINT16}),
    "ScatterElements": _SIXTEEN,
    "ScatterND": _SIXTEEN,
}

#: Operators that are computed in float32, and what of them has to be exact there.
_IN_FLOAT = frozenset(
    {
        *("Clip", "Div", "Einsum", "Gemm", "MatMul", "Mod", "PRelu", "Pad", "Pow", "Relu", "Where"),
        *(
            "Equal",
            "Greater",
            "GreaterOrEqual",
            "Less",
            "LessOrEqual",
            "Resize",
            "ReverseSequence",
            "Trilu",
            "Upsample",
        ),
        *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
        *("ReduceSum", "ReduceSumSquare"),
    }
)
_SUMS = frozenset(
    {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSum", "ReduceSumSquare"}
)
_PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})

#: Operators of which ONNX has no form on 8 and 16 bits, or one that is computed in float32. OpenVINO takes them all.
_UNTYPED = _SUMS | _PRODUCTS | {"CumSum", "Pow", "PRelu"}


def may_have_defect(node: NodeProto, read: list[Value]) -> bool:
    """Whether `find` may know something of a node that reads these values."""
    kind = node.op_type
    if kind in ("Cast", "CastLike"):
        like = read[1].elem_type if len(read) > 1 else 0
        to = next((a.i for a in node.attribute if a.name == "to"), like)
        given = read[0].elem_type if read else 0
        return _is_cut(given, to) or (to == _T.BOOL and given == _T.INT32)
    first = read[1:2] if kind == "Where" else read[:1]  # its type decides in `find`
    if first and first[0].elem_type in _FLOATS:
        return False
    if kind in _LIMITED and read and read[0].elem_type in _LIMITED[kind]:
        return True
    if kind in _UNTYPED and any(value.elem_type in _NARROW for value in read):
        return True
    if kind not in _IN_FLOAT:
        return False
    read = [as_hinted(value) for value in (read[:1] if kind in _SUMS else read)]  # the axes are not among the numbers
    if kind in _COMPARISONS:
        return len(read) == 2 and read[0].elem_type in _WIDE and not _compared_exactly(read)
    exact_if_small = kind not in _SUMS and kind not in _PRODUCTS and kind not in ("Pow", "PRelu")
    return any(v.elem_type in _WIDE and not (v.small and (exact_if_small or v.assumed)) for v in read)


def find(site: Site, *, written: bool = False) -> Defect | None:
    """What is wrong with a node on integers; None where nothing is known.

    `written`: a rule wrote it, so that its constants have to be held to int32 too.
    """
    if site.domain or GUARDED in site.node.name or not site.node.output:
        return None
    sums = site.op_type.startswith("Reduce") and site.op_type not in ("ReduceMax", "ReduceMin")
    known = (site.node.output[0], *([site.input(0)] if sums else []))
    if any(0 in (site.shape(name) or ()) for name in known):  # there is nothing to compute, or to add up
        return None
    kind = site.elem_type(site.input(1 if site.op_type == "Where" else 0))
    ends = {site.input(i) for i in SATURATES.get(site.op_type, ())}
    constants = [site.value(name) for name in site.constants if name not in ends] if written else []
    if any(v.elem_type in _WIDE and not v.in_int32 for v in constants):
        return Defect("a constant is beyond what int32 holds", wrong=True)
    if site.op_type in ("Cast", "CastLike"):
        return _cast(site, kind)
    if kind in _LIMITED.get(site.op_type, ()):
        if site.op_type.startswith("Scatter") and site.attribute("reduction", "none") not in ("add", "mul"):
            return None
        if site.op_type == "Div":
            return Defect("quotients of 8 bits are rounded: in a branch, of dynamic shapes, without AVX2", wrong=True)
        what = "limited to the type's range" if kind in _EIGHT else "not cut back to 16 bits"
        return Defect(f"results beyond the type are {what} instead of wrapping around", wrong=True)
    if kind in _NARROW and site.op_type in _UNTYPED:
        return Defect("integers are added and multiplied in float32", wrong=True)
    if kind in _WIDE and site.op_type in _IN_FLOAT and not _exact(site):
        return Defect("integers beyond 2**24 are rounded to float32", wrong=True)
    return None


def _cast(site: Site, kind: int) -> Defect | None:
    to, x = cast_to(site), site.value(site.input(0))
    if _is_cut(kind, to) and not x.within(*_CUT[to]):
        return Defect("the result is not cut back to the type's bits", wrong=True)
    if to == _T.BOOL and kind == _T.INT32 and not x.within(-(2**31) + 1, 2**31):
        return Defect("the lowest int32 becomes false", wrong=True)
    return None


def _is_cut(kind: int, to: int) -> bool:
    """Whether a Cast leaves numbers wider than its type; negative ones become 0 in UINT4 with SSE4.2, or where shapes are dynamic."""
    return to in _CUT and (kind in INTEGER_BITS or (kind in _FLOATS and to not in _SIXTEEN))


def _compared_exactly(read: list[Value]) -> bool:
    """Whether rounding keeps the order of two numbers.

    One of them is less than 2**24, so that no other is rounded to it; or both come of a float32, and are not rounded.
    """
    return all(v.rounded or v.small for v in read) or any(
        v.within(-SMALL + 1, SMALL - 1) or (v.small and v.assumed) for v in read
    )


def _exact(site: Site) -> bool:
    read = [site.value(name) for name in site.node.input if name and site.elem_type(name) in _WIDE]
    if site.op_type in _COMPARISONS:  # of constants, OpenVINO compares all bits while it loads a model
        return _compared_exactly(read) or len(site.constants) == len(set(site.node.input))
    if site.op_type == "Pad":
        moves = not site.has_input(2) or site.attribute("mode", "constant") != "constant"
        return moves or site.value(site.input(2)).small
    if site.op_type in _SUMS:
        return _sum_is_small(site, read[0])
    if site.op_type in _PRODUCTS:
        return _products_are_small(site, read)
    if site.op_type == "Pow":
        exponent = site.value(site.input(1))
        return bool(
            read[0].small
            and exponent.within(0, 24)
            and exponent.high is not None
            and max(abs(read[0].low or 0), abs(read[0].high or 0), 1) ** int(exponent.high) <= SMALL
        )
    if site.op_type == "PRelu" and len(read) > 1:
        return arithmetic("Mul", read).small and read[0].small
    if site.op_type in ("ReduceMax", "ReduceMin", "Resize", "ReverseSequence", "Trilu", "Upsample"):
        read = read[:1]
    if site.op_type == "Where":
        return all(value.small or _is_limit(value) for value in read)
    return all(value.small for value in read)


def _is_limit(value: Value) -> bool:
    """Whether every element is beyond int32, and so becomes its largest or smallest number, which comes out of float32 as it is."""
    low, high = LIMITS[_T.INT32]
    return value.low is not None and value.high is not None and (value.low > high or value.high < low)


def _sum_is_small(site: Site, x: Value) -> bool:
    if x.assumed:
        return x.small
    shape = site.shape(site.input(0))
    if shape is None or None in shape:
        return False
    count = 1
    for size in shape:
        count *= size or 1
    kind = "ReduceSumSquare" if site.op_type in ("ReduceSumSquare", "ReduceL2") else "ReduceL1"
    return arithmetic(kind, [x], count).small


def _products_are_small(site: Site, read: list[Value]) -> bool:
    if all(value.assumed and value.small for value in read):
        return True
    shape = site.shape(site.input(0))
    if shape is None or None in shape or len(read) < 2:
        return False
    count = 1
    for size in shape:
        count *= size or 1
    return arithmetic("MatMul", read[:2], count).small
