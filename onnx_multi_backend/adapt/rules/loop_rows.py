# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop that collects rows, and may make no step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, helper, numpy_helper

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.loop_of_no_steps import runs_once
from onnx_multi_backend.adapt.site import Body, Site

#: Since these opsets there is what the rule writes, and Slice takes its bounds as inputs.
_OLDEST, _SLICE_INPUTS = 9, 10


def loop_rows(site: Site) -> Iterator[ModelProto]:
    """Count the steps in a state of the loop's own, and cut the rows to as many. Source: Loop's documentation.

    Of no rows, a size that the body does not tell is 0, as ONNX Runtime has it.
    """
    if not site.is_("Loop") or GUARDED in site.node.name or not collects(site) or site.opset < _OLDEST:
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    states = len(graph.input) - 2
    graph.initializer.append(numpy_helper.from_array(np.array(1), "rows/one"))
    graph.node.append(helper.make_node("Add", ["rows/before", "rows/one"], ["rows/after"]))
    _insert(graph.input, 2 + states, "rows/before")
    _insert(graph.output, 1 + states, "rows/after")
    body = Body(site, site.opsets)
    first = body.constant(np.array(0))
    inputs = [*site.node.input, *[""] * (2 + states - len(site.node.input)), first]
    made = body("Loop", *inputs, outputs=len(graph.output) - 1, name=GUARDED, body=graph)
    steps = body("Reshape", made[states], body.ints(1))
    types = [value.type for value in site.attribute("body").output[1 + states :]]
    rows = [_cut(body, site.opset, *row, steps) for row in zip(made[states + 1 :], types, strict=True)]
    yield body.finish(*made[:states], *rows)


def _cut(body: Body, opset: int, rows: str, kind: TypeProto, steps: str) -> str:
    """The first rows, of one of the body's results, which have sizes of 0 before any step.

    Sizes that the body declares are given to them, others are cut. A Reshape to what a Shape of the rows says is not written: in a
    run without a step OpenVINO then leaves out the Gathers of other shapes in the graph.
    """
    zero = body.ints(0)
    if opset < _SLICE_INPUTS:
        value = numpy_helper.from_array(np.array([1]))
        places = body("NonZero", body("ConstantOfShape", steps, value=value))
        return str(body("Gather", rows, body("Reshape", places, body.ints(-1)), axis=0))
    cut = str(body("Slice", rows, zero, steps, zero))
    dims = kind.tensor_type.shape.dim
    unknown = [1 + i for i, dim in enumerate(dims) if not dim.HasField("dim_value")]
    if dims and not unknown:  # 0 steps: the first size, 0, is kept
        return str(body("Reshape", cut, body("Concat", steps, body.ints(*(dim.dim_value for dim in dims)), axis=0)))
    if not unknown:
        return cut
    some = body.cast(body("Less", zero, steps), TensorProto.INT64)
    ends = body("Mul", some, body.ints(*[2**31 - 1] * len(unknown)))
    cut = str(body("Slice", cut, body.ints(*[0] * len(unknown)), ends, body.ints(*unknown)))
    if len(unknown) == len(dims):
        return cut
    return str(body("Reshape", cut, body.ints(0, *(dim.dim_value for dim in dims))))  # 0: the size that is there


def collects(site: Site) -> bool:
    """Whether a Loop that may make no step collects rows."""
    return len(site.attribute("body").output) > len(site.attribute("body").input) - 1 and not runs_once(site)


def _insert(values: object, place: int, name: str) -> None:
    values.insert(place, helper.make_tensor_value_info(name, TensorProto.INT64, []))  # type: ignore[attr-defined]
