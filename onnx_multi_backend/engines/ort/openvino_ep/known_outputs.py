# SPDX-License-Identifier: Apache-2.0
"""Outputs that are known before anything runs, which the OpenVINO provider misses in a model that it takes as a whole.

ONNX Runtime computes them while the session is built (a constant, the `Shape` of a fixed size), and the provider, asked to load the
graph, finds no node that makes them. So the CPU provider passes them on in every run: in an If, of which only the run tells that its
condition is true, and that makes a text too, since the provider takes no node of text.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST, LEFT
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.engines.ort.openvino_ep.branched import branched
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import canonical, defaults_of

#: What the provider says, behind the name of the output; and ONNX Runtime, where a node that the provider takes reads that output.
_MISSING = " node not found in graph cache"
_TWICE = "Duplicate definition of name ("

_SUFFIX = "/omb_known"
#: Since this opset `Less` broadcasts.
_BROADCASTS = 7


def named_output(model: ModelProto, words: str) -> ValueInfoProto | None:
    """The output that a refusal names as such."""
    said = (": {}" + _MISSING, _TWICE + "{})")
    return next((o for o in model.graph.output if any(form.format(o.name) in words for form in said)), None)


def passed_on(payload: Payload, output: ValueInfoProto) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with such an output passed on by the CPU provider."""
    model = payload.adapted.proto
    defaults = defaults_of(model.graph)
    read = next((v for v in model.graph.input if v.type.HasField("tensor_type") and v.name not in defaults), None)
    opset = next((o.version for o in model.opset_import if not canonical(o.domain)), 1)
    if read is None or opset < _BROADCASTS:
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    known = output.name + _SUFFIX
    nodes = [renamed(node, lambda name: known if name == output.name else name) for node in graph.node]
    for tensor in graph.initializer:
        if tensor.name == output.name:
            tensor.name = known
    added = _passing(output, known, read.name)
    del graph.node[:]
    graph.node.extend([*nodes, *added])
    change = Adaptation(
        "known_outputs",
        f"output {output.name}",
        "passed on by the CPU provider",
        "the OpenVINO execution provider misses an output that is known before anything runs",
    )
    return payload.changed(copy, change, inserted={node.name for node in added}), (change,)


def _passing(output: ValueInfoProto, known: str, read: str) -> list[NodeProto]:
    """The nodes that make an output of what is known of it."""
    name = f"{CAST}_{LEFT}_{output.name}"
    size, number, least, true = (f"{known}/{part}" for part in ("size", "number", "least", "true"))
    nodes = [
        helper.make_node("Size", [read], [size]),
        helper.make_node("Cast", [size], [number], to=TensorProto.FLOAT),
        helper.make_node("Constant", [], [least], value=helper.make_tensor("least", TensorProto.FLOAT, [], [-1.0])),
        helper.make_node("Less", [least, number], [true]),
        branched([helper.make_node("Identity", [known], [output.name])], {output.name: output.type}, true, known),
    ]
    for place, node in enumerate(nodes):
        node.name = f"{name}_{place}"
    return nodes
