# SPDX-License-Identifier: Apache-2.0
"""Rule: products of integers along axes, where a kernel multiplies in floating point."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.rules.integer_sums import axes_of
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_TYPES = (_T.INT32, _T.INT64)


def integer_reduce_prod(site: Site) -> Iterator[ModelProto]:
    """Multiply each number by the one 1, 2, 4, ... places behind it until the first holds all; the result wraps around as the type does.

    Source: ReduceProd's documentation.
    """
    x = site.input(0)
    kind, rank = site.elem_type(x), site.rank(x)
    if not site.is_("ReduceProd") or kind not in _TYPES or not rank or not (axes := axes_of(site)):
        return
    body = Body(site)
    always, zero, one = body.constant(True), body.constant(0, _T.INT64), body.constant(1, _T.INT64)
    for axis in axes:
        end = body("Gather", body("Shape", x), body.constant(axis, _T.INT64))
        places = body("Range", zero, body("Add", end, one), one)
        pads = body.ints(*(int(i == rank + axis) for i in range(2 * rank)))
        padded = body("Pad", x, pads, body.constant(1, kind))
        step = _step(kind, axis, rank, places, end)
        multiplied, _ = body("Loop", "", always, padded, one, outputs=2, body=step)
        x = body("Gather", multiplied, body.ints(0), axis=axis)
    yield body.finish(x if site.attribute("keepdims", 1) else body("Squeeze", x, body.ints(*axes)))


def _step(kind: int, axis: int, rank: int, places: str, end: str) -> GraphProto:
    """Behind the numbers there is a one, which is as far as one can go. All steps have one shape: OpenVINO cannot read others."""
    nodes = [
        helper.make_node("Add", [places, "distance"], ["beyond"]),
        helper.make_node("Min", ["beyond", end], ["behind"]),
        helper.make_node("Gather", ["given", "behind"], ["factors"], axis=axis),
        helper.make_node("Mul", ["given", "factors"], ["made"]),
        helper.make_node("Add", ["distance", "distance"], ["farther"]),
        helper.make_node("Less", ["farther", end], ["again"]),
    ]
    numbers = (helper.make_tensor_value_info(name, _T.INT64, []) for name in ("step", "distance", "farther"))
    on, again = (helper.make_tensor_value_info(name, _T.BOOL, []) for name in ("on", "again"))
    given, made = (helper.make_tensor_value_info(name, kind, [None] * rank) for name in ("given", "made"))
    step, distance, farther = numbers
    return helper.make_graph(nodes, "multiplied", [step, on, given, distance], [again, made, farther])
