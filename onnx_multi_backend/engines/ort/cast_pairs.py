# SPDX-License-Identifier: Apache-2.0
"""Around what the OpenVINO execution provider (1.24.1) makes of a float16 output that is cast to float32 for another output.

It takes the second Cast with the first for one that changes nothing, and then leaves the memory of the float16 output unwritten.
"""

from __future__ import annotations

from dataclasses import replace

from onnx import ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.session import Payload


def kept_apart(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the larger of a value and itself, which is that value, before each such Cast."""
    graph = payload.adapted.proto.graph
    narrow = {v.name for v in graph.output if v.type.tensor_type.elem_type == TensorProto.FLOAT16}
    if not narrow:
        return payload, ()
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}

    def source(name: str) -> str:
        while name in sources:
            name = sources[name]
        return name

    roots = {source(name) for name in narrow}
    casts = {i for i, n in enumerate(graph.node) if _widens(n) and source(n.input[0]) in roots}
    if not casts:
        return payload, ()
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    nodes: list[NodeProto] = []
    added = set()
    for i, node in enumerate(copy.graph.node):
        if i in casts:
            name = f"{node.output[0]}{CAST}apart"
            nodes.append(helper.make_node("Max", [node.input[0]] * 2, [name], name=name))
            node.input[0] = name
            added.add(name)
        nodes.append(node)
    made = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del copy.graph.node[:]
    copy.graph.node.extend(made)
    change = Adaptation(
        "kept_apart",
        "",
        f"Max between float16 outputs and their Casts to float32 ({len(casts)})",
        "the OpenVINO execution provider drops the pair of Casts, and leaves the output between them unwritten",
    )
    adapted = replace(
        payload.adapted,
        proto=copy,
        changes=(*payload.adapted.changes, change),
        inserted=payload.adapted.inserted | added,
    )
    return replace(payload, adapted=adapted), (change,)


def _widens(node: NodeProto) -> bool:
    return node.op_type == "Cast" and any(a.name == "to" and a.i == TensorProto.FLOAT for a in node.attribute)
