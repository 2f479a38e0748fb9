# SPDX-License-Identifier: Apache-2.0
"""Rule: a Scan whose body passes on what it is given of each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.site import Body, Site
from onnx_multi_backend.models.graph_walk import canonical

#: Operators of one value that an engine may read as that value.
_PASSING = frozenset({"Dropout", "Max", "Mean", "Min", "SequenceAt", "SequenceConstruct", "Sum"})

#: What makes of a value that value in memory of its own; Max of numbers.
_KEPT: Mapping[int, str] = {TensorProto.BOOL: "Or", TensorProto.STRING: "Identity"}


def passes_slices_on(site: Site) -> list[str]:
    """The inputs of the body, of one step each, that such operators make an output of, or that an Identity too makes a state of."""
    if not site.is_("Scan") or site.opset < 9:
        return []
    body: GraphProto = site.attribute("body")
    states = len(body.input) - site.attribute("num_scan_inputs", 0)
    source = {value.name: value.name for value in body.input[states:]}
    passed = dict(source)
    for node in body.node:
        if canonical(node.domain) or not node.input:
            continue
        if node.op_type in _PASSING and node.input[0] in source:
            source[node.output[0]] = source[node.input[0]]
        if node.op_type in (*_PASSING, "Identity") and node.input[0] in passed:
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
            given = f"slice/{value.name}"
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
