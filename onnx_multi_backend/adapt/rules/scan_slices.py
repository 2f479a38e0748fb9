# SPDX-License-Identifier: Apache-2.0
"""Rule: a Scan whose body passes on what it is given of each step."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, helper

from onnx_multi_backend.adapt.site import Body, Site

#: Operators of one value that an engine may read as that value.
_PASSING = frozenset({"Dropout", "Max", "Mean", "Min", "SequenceAt", "SequenceConstruct", "Sum"})


def passes_slices_on(site: Site) -> list[str]:
    """The inputs of the body, of one step each, that such an operator makes an output of."""
    if not site.is_("Scan") or site.opset < 9:
        return []
    body: GraphProto = site.attribute("body")
    states = len(body.input) - site.attribute("num_scan_inputs", 0)
    source = {value.name: value.name for value in body.input[states:]}
    for node in body.node:
        if node.op_type in _PASSING and node.input and node.input[0] in source:
            source[node.output[0]] = source[node.input[0]]
    own = {value.name for value in body.input}
    return sorted({source[v.name] for v in body.output if v.name in source and v.name not in own})


def scan_slices(site: Site) -> Iterator[ModelProto]:
    """Have an Identity pass them on, which is a node of the engine too."""
    if not (slices := passes_slices_on(site)):
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    before = []
    for value in graph.input:
        if value.name in slices:
            given = f"slice/{value.name}"
            before.append(helper.make_node("Identity", [given], [value.name]))
            value.name = given
    nodes = [*before, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    body = Body(site, site.opsets)
    count = len(site.node.output)
    yield body.finish(*body("Scan", *site.node.input, outputs=count, body=graph, **site.attributes("body")))
