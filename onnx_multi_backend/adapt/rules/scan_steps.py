# SPDX-License-Identifier: Apache-2.0
"""Rule: a Scan with a result that does not depend on what its body is given of each step."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.rules.loop_states import needed_of
from onnx_multi_backend.adapt.site import Body, Site

#: What may read nothing of an operand: its shape alone, a part without elements, another tensor of a sequence.
_UNREAD = frozenset(
    """
    Compress ConcatFromSequence EyeLike Optional OptionalGetElement SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceMap
    Shape Size Slice Split SplitToSequence
    """.split()
)
#: Before the names of what the body gets more.
_STEP = "step/"


def blind_results(site: Site) -> list[int]:
    """The places of the body's outputs, of those that the Scan hands on, which depend on no input that it is given of each step."""
    if not site.is_("Scan") or site.opset < 9:
        return []
    body: GraphProto = site.attribute("body")
    states = len(body.input) - site.attribute("num_scan_inputs", 0)
    given = {value.name for value in body.input[states:]}
    return [
        place
        for place in range(len(body.output))
        if site.has_output(place) and given.isdisjoint(_needed(body, states, place))
    ]


def scan_steps(site: Site) -> Iterator[ModelProto]:
    """Let each step choose between such a result and itself, by a number that the Scan reads a step.

    An engine that drops what no result needs has nothing left then that tells how many steps there are, and makes one.
    Source: Scan's documentation.
    """
    if not (places := blind_results(site)):
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    never, before, step = f"{_STEP}never", f"{_STEP}before", f"{_STEP}number"
    graph.input.append(helper.make_tensor_value_info(step, TensorProto.INT64, []))
    graph.initializer.append(helper.make_tensor(never, TensorProto.INT64, [], [-1]))
    graph.node.append(helper.make_node("Equal", [step, never], [before]))
    for place in places:
        value = graph.output[place]
        graph.node.append(helper.make_node("Where", [before, value.name, value.name], [f"{_STEP}{place}"]))
        value.name = f"{_STEP}{place}"
    body = Body(site, site.opsets)
    count, attributes = site.attribute("num_scan_inputs"), site.attributes("body", "num_scan_inputs")
    rows = site.node.input[len(graph.input) - 1 - count]
    axis = next(iter(attributes.get("scan_input_axes", ())), 0)
    shape = body("Shape", rows)
    length = body("Gather", shape, body.ints(axis))
    numbers = body("Expand", body.constant(0, TensorProto.INT64), length)
    for name in ("scan_input_axes", "scan_input_directions"):
        if name in attributes:
            attributes[name] = [*attributes[name], 0]
    made = body(
        "Scan",
        *site.node.input,
        numbers,
        outputs=len(site.node.output),
        body=graph,
        num_scan_inputs=count + 1,
        name=site.node.name,
        **attributes,
    )
    yield body.finish(*made)


def _needed(body: GraphProto, states: int, place: int) -> set[str]:
    """The values of any step that one output of a body depends on."""
    wanted = {place}
    while True:
        needed = needed_of(body, {body.output[i].name for i in wanted}, _UNREAD)
        more = {i for i in range(states) if body.input[i].name in needed}
        if more <= wanted:
            return needed
        wanted |= more
