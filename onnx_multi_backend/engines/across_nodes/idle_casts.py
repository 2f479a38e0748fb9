# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Cast to the type that a value has.

It leaves the Cast out, and may leave out what stands before it too (Mul by 1, Concat of one operand). Where nothing is left between an input of
open sizes and a result, a later run returns memory that was never written. An Identity stays where it is needed, and is left out elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.float_names import first_output
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import constant_tensor

_CASTS = frozenset({"Cast", "CastLike"})
#: Which of a body's outputs is the first of the node's.
_FIRST = {"If": 0, "Loop": 1, "Scan": 0}
_REASON = "OpenVINO leaves it out, and may return memory that was never written"


def idle_casts(contents: Contents) -> Rewritten | None:
    """A copy of the model with an Identity in place of each of these; None where there are none."""
    if not contents.has(_CASTS) or not _has_open_sizes(contents.model.graph):
        return None
    flat = inlined(contents.model)
    if next(_found(flat.graph, {}), None) is None:
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    changes = []
    for node in list(_found(copy.graph, {})):
        where = f"{node.op_type} {node.name or node.output[0]!r}"
        changes.append(Adaptation("idle_casts", where, "written as Identity", _REASON))
        node.op_type = "Identity"
        del node.attribute[:], node.input[1:]
    return Rewritten(copy, tuple(changes))


def _has_open_sizes(graph: GraphProto) -> bool:
    types = (value.type.tensor_type for value in graph.input if value.type.HasField("tensor_type"))
    return any(not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim) for kind in types)


def _found(graph: GraphProto, outer: Mapping[str, int]) -> Iterator[NodeProto]:
    """The casts to the type that a value has, as far as it is known without inference."""
    kinds = dict(outer)
    kinds.update(_declared(value) for value in (*graph.value_info, *graph.input))
    kinds.update((tensor.name, tensor.data_type) for tensor in graph.initializer)
    for node in graph.node:
        for body in subgraphs(node):
            yield from _found(body, kinds)
        made = _made(node, kinds)
        kinds.update((name, kind) for name, kind in made.items() if kind)
        if node.op_type in _CASTS and made and node.input and kinds.get(node.input[0], 0) == made[node.output[0]] != 0:
            yield node


def _declared(value: ValueInfoProto) -> tuple[str, int]:
    return value.name, value.type.tensor_type.elem_type


def _made(node: NodeProto, kinds: Mapping[str, int]) -> dict[str, int]:
    """The element types of what a node makes; 0 where it is not known."""
    if canonical(node.domain) or not node.output:
        return {}
    if node.op_type in _FIRST:
        body = next(subgraphs(node), GraphProto())
        return {
            name: value.type.tensor_type.elem_type
            for name, value in zip(node.output, body.output[_FIRST[node.op_type] :], strict=False)
        }
    return {node.output[0]: _first(node, kinds)}


def _first(node: NodeProto, kinds: Mapping[str, int]) -> int:
    match node.op_type:
        case "Cast":
            return next((a.i for a in node.attribute if a.name == "to"), 0)
        case "CastLike":
            return kinds.get(node.input[1], 0) if len(node.input) > 1 else 0
        case "Constant":
            tensor = constant_tensor(node)
            return tensor.data_type if tensor is not None else 0
        case "ConstantOfShape":
            return next((a.t.data_type for a in node.attribute if a.name == "value"), TensorProto.FLOAT)
        case _:
            known = (kinds.get(node.input[i], 0) for i in first_output(node.op_type).like if i < len(node.input))
            return next(filter(None, known), 0)
