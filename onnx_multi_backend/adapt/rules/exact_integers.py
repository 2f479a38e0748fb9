# SPDX-License-Identifier: Apache-2.0
"""Rule: integer operators whose kernels are exact for some values only, written with operators that are exact for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.integer_comparisons import COMPARED, compared_beyond
from onnx_multi_backend.adapt.rules.integer_digits import summed_in_digits
from onnx_multi_backend.adapt.rules.integer_division import divided
from onnx_multi_backend.adapt.rules.integer_moves import in_halves, lower_triangle
from onnx_multi_backend.adapt.rules.integer_reductions import absolutes, mean, root_of_squares, squares
from onnx_multi_backend.adapt.rules.integer_sums import summed
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
#: uint32 is widened to int64 before, but for what moves or compares its bits.
_TYPES = (_T.INT32, _T.INT64, _T.UINT64)
_ALL = (*_TYPES, _T.UINT32)


def exact_integers(site: Site) -> Iterator[ModelProto]:
    """Write an operator on integers of 32 or 64 bits with sums, products, bitwise operators, and either ``Max`` or comparisons.

    Sums and products wrap around as the type does on every engine that was tried. Where ``Max`` is wrong ``Less`` is right, and the
    other way round.
    """
    kind = site.elem_type(site.input(1 if site.op_type == "Where" else 0))
    write = _WRITERS.get(site.op_type) if not site.domain else None
    types = (_T.UINT16,) if site.op_type == "BitwiseNot" else _ALL if site.op_type in COMPARED else _TYPES
    if write is None or kind not in types or GUARDED in site.node.name:
        return
    if site.op_type == "Cast" and site.attribute("to") != _T.BOOL:
        return
    for wide in (True, False):
        if wide and (
            site.op_type not in ("ReduceMax", "ReduceMin") or kind != _T.INT64 or site.value(site.input(0)).in_int32
        ):
            continue
        body = Body(site)
        result = _wide_extreme(body, site) if wide else write(body, site, kind)
        if result is not None:
            yield body.finish(result)
    body = Body(site)
    if (result := compared_beyond(body, site, kind)) is not None:
        yield body.finish(result)
    for width in (64, 32) if kind == _T.INT64 else (32,):
        body = Body(site)
        if (result := summed_in_digits(body, site, kind, width)) is not None:
            yield body.finish(result)


def _relu(body: Body, site: Site, kind: int) -> str:
    return str(body("Max", site.input(0), body.constant(0, kind)))


def _sign(body: Body, site: Site, kind: int) -> str:
    x, zero = site.input(0), body.constant(0, kind)
    return str(body("Sub", body.cast(body("Less", zero, x), kind), body.cast(body("Less", x, zero), kind)))


def _clip(body: Body, site: Site, kind: int) -> str:
    result = site.input(0)
    if site.has_input(1):
        result = body("Max", result, site.input(1))
    if site.has_input(2):
        result = _smaller_of_sum(body, result, site.input(2))
    return result


def _smaller_of_sum(body: Body, a: str, b: str) -> str:
    """The sum without the larger: OpenVINO makes of ``Min(Max(x))`` a Clip again."""
    return str(body("Sub", body("Add", a, b), body("Max", a, b)))


def _extreme(body: Body, site: Site, kind: int) -> str:
    result, *others = site.node.input
    for other in others:
        result = (_larger if site.op_type == "Max" else _smaller)(body, result, other)
    return str(result)


def _larger(body: Body, a: str, b: str) -> str:
    return str(body("Where", body("Less", a, b), b, a))


def _smaller(body: Body, a: str, b: str) -> str:
    return str(body("Where", body("Less", b, a), b, a))


def _prelu(body: Body, site: Site, kind: int) -> str:
    x, slope = site.input(0), site.input(1)
    return str(body("Where", body("Less", x, body.constant(0, kind)), body("Mul", slope, x), x))


def _inverted(body: Body, site: Site, kind: int) -> str:
    return str(body("BitwiseXor", site.input(0), body.constant(2**16 - 1, kind)))


def _as_bool(body: Body, site: Site, kind: int) -> str:
    return str(body("Not", body("Equal", site.input(0), body.constant(0, kind))))


def _reduced(body: Body, site: Site, kind: int) -> str:
    """Of numbers that int32 holds."""
    lower = body("BitwiseAnd", site.input(0), body.constant(2**16 - 1, kind))
    return _by_halves(body, site, kind, lower, (2**16, 0, 2**16 - 1))


def _wide_extreme(body: Body, site: Site) -> str:
    """Of all int64. The lower halves are moved to where int32 holds them."""
    middle = body.constant(2**31, _T.INT64)
    lower = body("Mod", site.input(0), body.constant(2**32, _T.INT64))
    found = _by_halves(body, site, _T.INT64, lower, (2**32, -(2**31), 2**31 - 1), middle)
    return str(body("Add", found, middle))


def _by_halves(body: Body, site: Site, kind: int, lower: str, sizes: tuple[int, int, int], middle: str = "") -> str:
    """The extreme of the upper halves, then that of the lower halves beside it: each half is exact.

    That of nothing is beyond both halves, and is held to them.

    Parameters
    ----------
    sizes : tuple of int
        What the upper half counts; the lowest and the highest lower half, `middle` subtracted.
    """
    x, most, base = site.input(0), site.op_type == "ReduceMax", body.constant(sizes[0], kind)
    upper = body("Div", body("Sub", x, lower), base, name=GUARDED)  # without its lower half x is exact in float32 too
    lower = body("Sub", lower, middle) if middle else lower
    axes = [site.input(1)] if site.has_input(1) else []
    if given := site.attribute("axes"):
        axes = [body.ints(*given)]
    options = site.attributes("axes", "keepdims")
    keep = site.attribute("keepdims", 1)

    shape, half = site.shape(x), sizes[0] // 2
    may_be_nothing = shape is None or not all(shape)

    def reduced(value: str, keepdims: int, end: int) -> str:
        made = body(site.op_type, value, *axes, keepdims=keepdims, name=GUARDED, **options)
        if may_be_nothing:
            made = body("Max" if most else "Min", made, body.constant(end, kind), name=GUARDED)
        return str(made)

    lowest = 0 if kind == _T.UINT64 else -half
    ends = lowest if most else half - 1, sizes[1] if most else sizes[2]
    found = reduced(upper, 1, ends[0])
    beside = body("Where", body("Equal", upper, found), lower, body.constant(ends[1], kind))
    rest = reduced(beside, keep, ends[1])
    return str(body("Add", body("Mul", found if keep else reduced(upper, 0, ends[0]), base), rest))


_WRITERS: Mapping[str, Callable[[Body, Site, int], str | None]] = {
    **COMPARED,
    "BitwiseNot": _inverted,
    "Cast": _as_bool,
    "Clip": _clip,
    "Div": divided,
    "Max": _extreme,
    "Min": _extreme,
    "Mod": divided,
    "PRelu": _prelu,
    "ReduceL1": absolutes,
    "ReduceL2": root_of_squares,
    "ReduceMax": _reduced,
    "ReduceMean": mean,
    "ReduceMin": _reduced,
    "ReduceSum": summed,
    "ReduceSumSquare": squares,
    "Relu": _relu,
    "Resize": in_halves,
    "ReverseSequence": in_halves,
    "Sign": _sign,
    "Trilu": lower_triangle,
    "Upsample": in_halves,
}
