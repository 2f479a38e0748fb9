# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop that collects rows of strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.operators.string_rows import rows_of_strings, shared_rows
from onnx_multi_backend.adapt.site import Body, Site

#: Since these opsets Reshape takes its shape as an input, Where exists, and Unsqueeze takes its axes as an input.
_SHAPE_INPUT, _WHERE, _AXES_INPUT = 5, 9, 13


def loop_strings(site: Site) -> Iterator[ModelProto]:
    """Copy the rows that may be another value's own memory, or join all rows in states of the loop. Source: Loop's documentation.

    A Where of a value and itself copies: ONNX Runtime gives neither it nor its result the memory of another value. Joining takes time that
    grows with the square of the number of rows. Of no rows, a size that the body does not tell is 0, as ONNX Runtime has it.
    """
    rows = rows_of_strings(site)
    if not rows:
        return
    shared = shared_rows(site)
    if shared and site.opset >= _WHERE:
        yield _copied(site, shared)
    if (joined := _joined(site, rows)) is not None:
        yield joined


def _copied(site: Site, places: list[int]) -> ModelProto:
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    graph.initializer.append(numpy_helper.from_array(np.array(True), "copied/always"))
    for place in places:
        row = graph.output[1 + place]
        copy = f"copied/{place}"
        graph.node.append(helper.make_node("Where", ["copied/always", row.name, row.name], [copy]))
        row.name = copy
    body = Body(site, site.opsets)
    return body.finish(*body("Loop", *site.node.input, outputs=len(graph.output) - 1, body=graph))


def _joined(site: Site, places: list[int]) -> ModelProto | None:
    """The rows as further states, of the shape that each step's row tells; None where a row's rank is not known."""
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    states = len(graph.input) - 2
    kinds = {place: graph.output[1 + place].type.tensor_type for place in places}
    if site.opset < _SHAPE_INPUT or not all(kind.HasField("shape") for kind in kinds.values()):
        return None
    body = Body(site, site.opsets)
    inputs = [*site.node.input, *[""] * (2 + states - len(site.node.input))]
    graph.initializer.append(numpy_helper.from_array(np.array([1]), "joined/one"))
    graph.initializer.append(numpy_helper.from_array(np.array([0]), "joined/zero"))
    graph.node.append(helper.make_node("Reshape", [graph.input[0].name, "joined/one"], ["joined/steps"]))
    results, added = list(graph.output), []
    for place, kind in kinds.items():
        sizes = [dim.dim_value for dim in kind.shape.dim]
        state = f"joined/{place}"
        _join(graph, results[1 + place].name, state, axes_input=site.opset >= _AXES_INPUT)
        unknown = [None] * (1 + len(sizes))
        graph.input.append(helper.make_tensor_value_info(state, TensorProto.STRING, unknown))
        added.append(helper.make_tensor_value_info(f"{state}/after", TensorProto.STRING, unknown))
        inputs.append(str(body("Constant", value=TensorProto(data_type=TensorProto.STRING, dims=[0, *sizes]))))
    others = [result for place, result in enumerate(results[1 + states :], states) if place not in kinds]
    del graph.output[:]
    graph.output.extend([*results[: 1 + states], *added, *others])
    made = body("Loop", *inputs, outputs=len(graph.output) - 1, body=graph)
    joined = dict(zip(places, made[states:], strict=False))
    rest = iter(made[states + len(places) :])
    rows = [joined[place] if place in joined else next(rest) for place in range(states, len(results) - 1)]
    return body.finish(*made[:states], *rows)


def _join(graph: GraphProto, row: str, state: str, *, axes_input: bool) -> None:
    """Add a row to the rows before it, which get its shape even where it has no elements."""
    unsqueezed = [row, "joined/zero"] if axes_input else [row]
    axes = {} if axes_input else {"axes": [0]}
    nodes: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Shape", [row], "sizes", {}),
        ("Concat", ["joined/steps", f"{state}/sizes"], "shape", {"axis": 0}),
        ("Reshape", [state, f"{state}/shape"], "before", {}),
        ("Unsqueeze", unsqueezed, "row", axes),
        ("Concat", [f"{state}/before", f"{state}/row"], "after", {"axis": 0}),
    ]
    for op_type, read, made, attributes in nodes:
        graph.node.append(helper.make_node(op_type, read, [f"{state}/{made}"], **attributes))
