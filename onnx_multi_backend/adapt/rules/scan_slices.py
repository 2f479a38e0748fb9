# SPDX-License-Identifier: Apache-2.0
"""Rule: a Scan whose body passes on what it is given of each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.graph_walk import canonical

#: Operators that an engine may read as their first operand, and those that it may where they have one.
_PASSING = frozenset({"Dropout", "SequenceAt"})
_OF_ONE = frozenset({"Max", "Mean", "Min", "SequenceConstruct", "Sum"})
#: Before the name of what is passed on by a node of its own.
_GIVEN = "slice/"

#: What makes of a value that value in memory of its own; Max of numbers.
_KEPT: Mapping[int, str] = {TensorProto.BOOL: "Or", TensorProto.STRING: "Identity"}


def passes_slices_on(site: Site) -> list[str]:
    """The inputs of the body, of one step each, that such operators make an output of, or that an Identity too makes a state of."""
    if not site.is_("Scan") or site.opset < 9:
        return []
    body: GraphProto = site.attribute("body")
    states = len(body.input) - site.attribute("num_scan_inputs", 0)
    source = {value.name: value.name for value in body.input[states:] if not value.name.startswith(_GIVEN)}
    passed = dict(source)
    for node in body.node:
        if canonical(node.domain) or not node.input:
            continue
        passes = node.op_type in _PASSING or (node.op_type in _OF_ONE and len(node.input) == 1)
        if passes and node.input[0] in source:
            source[node.output[0]] = source[node.input[0]]
        if (passes or node.op_type == "Identity") and node.input[0] in passed:
            passed[node.output[0]] = passed[node.input[0]]
    own = {value.name for value in body.input}
    rows = {source[v.name] for v in body.output[states:] if v.name in source and v.name not in own}
    return sorted(rows | {passed[v.name] for v in body.output[:states] if v.name in passed})


def scan_slices(site: Site) -> Iterator[ModelProto]:
    """Have the larger of a value and itself passed on, or either of two truth values, which has memory of its own; of text, an Identity."""
    if not (slices := passes_slices_on(site)):
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    before = []
    for value in graph.input:
        if value.name in slices:
            given = f"{_GIVEN}{value.name}"
            operator = _KEPT.get(value.type.tensor_type.elem_type, "Max")
            read = [given] if operator == "Identity" else [given, given]
            before.append(helper.make_node(operator, read, [value.name]))
            value.name = given
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    body = Body(site, site.opsets)
    count = len(site.node.output)
    yield body.finish(*body("Scan", *site.node.input, outputs=count, body=graph, **site.attributes("body")))
