# SPDX-License-Identifier: Apache-2.0
"""Rule: products of integers along axes, where a kernel multiplies in floating point."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.rules.integer_sums import axes_of
from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.tensors import numpy_dtype

_T = TensorProto
_TYPES = (_T.INT32, _T.INT64)


def integer_reduce_prod(site: Site) -> Iterator[ModelProto]:
    """Multiply one half by the other until one is left along each axis; the result wraps around as the type does.

    Source: ReduceProd's documentation.
    """
    x = site.input(0)
    kind, rank = site.elem_type(x), site.rank(x)
    if not site.is_("ReduceProd") or kind not in _TYPES or not rank or not (axes := axes_of(site)):
        return
    body = Body(site)
    one = body.constant(1, kind)
    always = body.constant(True)
    for axis in axes:
        pads = body.ints(*(int(i == rank + axis) for i in range(2 * rank)))
        padded = body("Pad", x, pads, one)  # of nothing, one is left too
        x = body("Loop", "", always, padded, body=_halving(kind, axis, rank))
    yield body.finish(x if site.attribute("keepdims", 1) else body("Squeeze", x, body.ints(*axes)))


def _halving(kind: int, axis: int, rank: int) -> GraphProto:
    """A step: the second half is multiplied, with a one behind it where it is shorter."""
    numbers = {"zero": [0], "one": [1], "two": [2], "axis": [axis], "front": [0] * (rank + axis)}
    numbers["back"] = [0] * (rank - axis - 1)
    constants = [numpy_helper.from_array(np.array(given, np.int64), name) for name, given in numbers.items()]
    constants.append(numpy_helper.from_array(np.ones((), numpy_dtype(kind)), "unit"))
    nodes = [
        helper.make_node("Shape", ["given"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "axis"], ["size"]),
        helper.make_node("Add", ["size", "one"], ["more"]),
        helper.make_node("Div", ["more", "two"], ["half"]),
        helper.make_node("Slice", ["given", "zero", "half", "axis"], ["first"]),
        helper.make_node("Slice", ["given", "half", "size", "axis"], ["second"]),
        helper.make_node("Mul", ["half", "two"], ["even"]),
        helper.make_node("Sub", ["even", "size"], ["lacking"]),
        helper.make_node("Concat", ["front", "lacking", "back"], ["pads"], axis=0),
        helper.make_node("Pad", ["second", "pads", "unit"], ["whole"]),
        helper.make_node("Mul", ["first", "whole"], ["made"]),
        helper.make_node("Less", ["one", "half"], ["left"]),
        helper.make_node("Squeeze", ["left", "zero"], ["again"]),
    ]
    step = helper.make_tensor_value_info("step", _T.INT64, [])
    on, again = (helper.make_tensor_value_info(name, _T.BOOL, []) for name in ("on", "again"))
    given, made = (helper.make_tensor_value_info(name, kind, [None] * rank) for name in ("given", "made"))
    return helper.make_graph(nodes, "halving", [step, on, given], [again, made], initializer=constants)
