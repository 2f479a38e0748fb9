# SPDX-License-Identifier: Apache-2.0
"""Around what the OpenVINO execution provider (1.24.1) makes of Casts that change nothing together, up to an output.

Of a float16 output that is cast to float32 for another output, it takes the second Cast with the first for such a pair, and then
leaves the memory of the float16 output unwritten. Of an input of unknown shape that is cast to its own type, the output is read from
memory that is no longer the input's, once the input gets smaller.
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.engines.across_nodes.apart import with_larger
from onnx_multi_backend.engines.session import Payload

#: The element types that ONNX Runtime's Max takes, by the opset since which it does. It casts float16 where it has no kernel of it.
_COMPARABLE = {
    1: frozenset({TensorProto.FLOAT, TensorProto.FLOAT16}),
    8: frozenset({TensorProto.DOUBLE}),
    12: frozenset(INTEGER_BITS),
}
#: Operators that change the type.
CASTS = ("Cast", "CastLike")
#: Operators that OpenVINO drops: of one input, or outside training.
_PASSES = frozenset({"Concat", "Dropout", "Identity", "Max", "Mean", "Min", "Sum"})


def kept_apart(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the larger of a value and itself, which is that value, before each such Cast."""
    graph = payload.adapted.proto.graph
    narrow = {v.name for v in graph.output if v.type.tensor_type.elem_type == TensorProto.FLOAT16}
    if not narrow and not any(node.op_type in CASTS for node in graph.node):
        return payload, ()
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}

    def source(name: str) -> str:
        while name in sources:
            name = sources[name]
        return name

    roots = {source(name) for name in narrow}
    casts = {i for i, n in enumerate(graph.node) if _widens(n) and source(n.input[0]) in roots}
    casts |= _passed_on(graph, opset_versions(payload.adapted.proto).get("", 1))
    if not casts:
        return payload, ()
    copy, added = with_larger(payload.adapted.proto, casts, f"{CAST}apart")
    change = Adaptation(
        "kept_apart",
        "",
        f"Max before Casts that change nothing up to an output ({len(casts)})",
        "the OpenVINO execution provider drops such Casts, and leaves an output unwritten",
    )
    return payload.changed(copy, change, inserted=added), (change,)


def _widens(node: NodeProto) -> bool:
    return node.op_type == "Cast" and any(a.name == "to" and a.i == TensorProto.FLOAT for a in node.attribute)


def passes(node: NodeProto) -> bool:
    """Whether OpenVINO may drop a node, whose result is then its first input."""
    return node.op_type in CASTS or (
        node.op_type in _PASSES and (len(node.input) == 1 or node.op_type == "Dropout") and not node.domain
    )


def _passed_on(graph: GraphProto, opset: int) -> set[int]:
    """The first Casts between an input of unknown shape and an output of its type, with nothing between them but Casts and what is dropped."""
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output}
    inputs = {v.name: v.type.tensor_type for v in graph.input}
    comparable = frozenset().union(*(types for since, types in _COMPARABLE.items() if opset >= since))
    found = set()
    for value in graph.output:
        name, first = value.name, None
        while (i := makers.get(name)) is not None and passes(graph.node[i]):
            first = i if graph.node[i].op_type in CASTS else first
            name = graph.node[i].input[0]
        given = inputs.get(name)
        if first is None or given is None or given.elem_type not in comparable:
            continue
        fixed = given.HasField("shape") and all(d.HasField("dim_value") for d in given.shape.dim)
        if given.elem_type == value.type.tensor_type.elem_type and not fixed:
            found.add(first)
    return found
