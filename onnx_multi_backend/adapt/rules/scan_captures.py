# SPDX-License-Identifier: Apache-2.0
"""Rule: a Scan whose body reads values from outside."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnx_multi_backend.adapt.renaming import renamed_graph
from onnx_multi_backend.adapt.single_node import captures, without_unread
from onnx_multi_backend.adapt.site import Body, Site


def _passed_on(before: ValueInfoProto, after: ValueInfoProto) -> Iterator[NodeProto]:
    """Nodes that make one value of the other, which has its type. OpenVINO 2025.4 fails to run a truth that an Identity passes on, and other nodes read."""
    if before.type.tensor_type.elem_type != TensorProto.BOOL:
        yield helper.make_node("Identity", [before.name], [after.name])
        return
    turned = f"{after.name}/turned"
    yield helper.make_node("Not", [before.name], [turned])
    yield helper.make_node("Not", [turned], [after.name])


def scan_captures(site: Site) -> Iterator[ModelProto]:
    """Put constants into the body, and hand all else in as states that every step passes on. Source: Scan's documentation in opset 9 and later.

    Nodes of the body that no result needs are left out.
    """
    if not site.is_("Scan") or site.opset < 9 or not captures(site.node):
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    without_unread(graph)
    captured = captures(helper.make_node("Scan", site.node.input, [], body=graph))
    scanned = site.attribute("num_scan_inputs")
    states = len(site.node.input) - scanned
    inside = {name: f"state/{name}" for name in captured}
    renamed_graph(graph, lambda name: inside.get(name, name))
    for name in list(captured):
        tensor = site.initializer(name)
        if tensor is not None:  # known before anything runs: the body holds it itself
            copy = graph.initializer.add()
            copy.CopyFrom(tensor)
            copy.name = inside[name]
            captured.remove(name)
    types = [found for name in captured if (found := site.type(name)) is not None]
    if any(found.HasField("tensor_type") and not found.tensor_type.HasField("shape") for found in types):
        return  # ONNX Runtime needs the rank of a state
    first = [helper.make_value_info(inside[name], found) for name, found in zip(captured, types, strict=True)]
    last = [helper.make_value_info(f"{inside[name]}/out", f) for name, f in zip(captured, types, strict=True)]
    for before, after in zip(first, last, strict=True):
        graph.node.extend(_passed_on(before, after))
    for values, more in ((graph.input, first), (graph.output, last)):
        rest = list(values)
        del values[:]
        values.extend([*rest[:states], *more, *rest[states:]])
    body = Body(site, site.opsets)
    inputs = [*site.node.input[:states], *captured, *site.node.input[states:]]
    count = len(site.node.output) + len(captured)
    made = body("Scan", *inputs, outputs=count, body=graph, **site.attributes("body"))
    yield body.finish(*made[:states], *made[states + len(captured) :])
