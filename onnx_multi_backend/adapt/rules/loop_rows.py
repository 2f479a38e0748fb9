# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop that collects rows, and may make no step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.loop_of_no_steps import runs_once
from onnx_multi_backend.adapt.site import Body, Site


def loop_rows(site: Site) -> Iterator[ModelProto]:
    """Count the steps in a state of the loop's own, and cut the rows to as many. Source: Loop's documentation."""
    if not site.is_("Loop") or GUARDED in site.node.name or not collects(site) or site.opset < 10:
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
    zero = body.ints(0)
    rows = [body("Slice", value, zero, steps, zero) for value in made[states + 1 :]]
    yield body.finish(*made[:states], *rows)


def collects(site: Site) -> bool:
    """Whether a Loop that may make no step collects rows."""
    return len(site.attribute("body").output) > len(site.attribute("body").input) - 1 and not runs_once(site)


def _insert(values: object, place: int, name: str) -> None:
    values.insert(place, helper.make_tensor_value_info(name, TensorProto.INT64, []))  # type: ignore[attr-defined]
