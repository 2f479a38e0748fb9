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
    """Multiply in a Loop along each axis; the result wraps around as the type does. Source: ReduceProd's documentation."""
    x = site.input(0)
    kind, rank = site.elem_type(x), site.rank(x)
    if not site.is_("ReduceProd") or kind not in _TYPES or not rank or not (axes := axes_of(site)):
        return
    body = Body(site)
    one = numpy_helper.from_array(np.ones(1, numpy_dtype(kind)))
    result, left = x, rank
    for axis in reversed(axes):
        shape = body("Shape", result)
        others = [i for i in range(left) if i != axis]
        sizes = body("Gather", shape, body.ints(*others)) if others else body.ints()
        steps = body("Gather", shape, body.constant(axis, _T.INT64))
        result = body(
            "Loop", steps, "", body("ConstantOfShape", sizes, value=one), body=_step(result, kind, axis, left)
        )
        left -= 1
    yield body.finish(body("Unsqueeze", result, body.ints(*axes)) if site.attribute("keepdims", 1) else result)


def _step(x: str, kind: int, axis: int, rank: int) -> GraphProto:
    """Multiply by the elements at one place along the axis. A Scan along an axis of size 0 may end ONNX Runtime's process."""
    place = helper.make_tensor_value_info("place", _T.INT64, [])
    on, still_on = (helper.make_tensor_value_info(name, _T.BOOL, []) for name in ("on", "still_on"))
    before, after = (helper.make_tensor_value_info(name, kind, [None] * (rank - 1)) for name in ("before", "after"))
    nodes = [
        helper.make_node("Identity", ["on"], ["still_on"]),
        helper.make_node("Gather", [x, "place"], ["factor"], axis=axis),
        helper.make_node("Mul", ["before", "factor"], ["after"]),
    ]
    return helper.make_graph(nodes, "step", [place, on, before], [still_on, after])
