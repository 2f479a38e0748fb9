# SPDX-License-Identifier: Apache-2.0
"""What is computed of float16 constants alone, which the OpenVINO provider reads from other memory.

ONNX Runtime computes ahead what its CPU provider has kernels for. Of float16 it has few, so such nodes are left to the OpenVINO
provider, as groups without an input: their results were seen to be of other memory where another constant is large (1.24.1).
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.inference import infer
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.apart import put_back
from onnx_multi_backend.engines.ort.chosen_branches import of_branches
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import canonical, subgraphs

_HALF = TensorProto.FLOAT16
_SUFFIX = "/omb_half"


def computed_ahead(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with each such node on float32 between Casts: ONNX Runtime computes them all ahead."""
    facts = payload.adapted.facts
    if _HALF not in facts.contents.tensor_types or facts.model.functions or not facts.nodes_of_constants:
        return payload, ()
    if of_branches(facts.contents):  # nothing is computed ahead of such a model
        return payload, ()
    of_constants = facts.computed_of_constants
    kinds = _kinds(payload.adapted.proto)
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    nodes: list[NodeProto] = []
    changed: list[str] = []
    for node in copy.graph.node:
        if of_constants.issuperset(node.output) and _is_half(node, kinds):
            nodes += _between_casts(node, kinds)
            changed.append(f"{node.op_type} {node.name or node.output[0]!r}")
        else:
            nodes.append(node)
    if not changed:
        return payload, ()
    put_back(copy.graph, nodes)
    reason = "the OpenVINO execution provider reads what is computed of float16 constants alone from other memory"
    changes = tuple(Adaptation("half_constants", where, "computed ahead, in float32", reason) for where in changed)
    casts = {node.name for node in copy.graph.node if node.name.startswith(CAST)}
    return payload.changed(copy, *changes, inserted=casts), changes


def _kinds(model: ModelProto) -> Mapping[str, int]:
    """The element types of the values of the main graph, as far as they are known."""
    graph = infer(model).graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.output)}
    kinds.update((tensor.name, tensor.data_type) for tensor in graph.initializer)
    made = (node for node in graph.node if node.op_type == "Constant" and node.attribute)
    kinds.update((n.output[0], n.attribute[0].t.data_type) for n in made if n.attribute[0].HasField("t"))
    return kinds


def _is_half(node: NodeProto, kinds: Mapping[str, int]) -> bool:
    """Whether a node reads float16, and the type of each of its results is known. A Cast is computed ahead as it is."""
    if canonical(node.domain) or node.op_type in ("Cast", "Constant") or any(True for _ in subgraphs(node)):
        return False
    return any(kinds.get(name) == _HALF for name in node.input) and all(kinds.get(name) for name in node.output if name)


def _between_casts(node: NodeProto, kinds: Mapping[str, int]) -> list[NodeProto]:
    before, after = [], []
    for place, name in enumerate(node.input):
        if kinds.get(name) == _HALF:
            node.input[place] = wide = f"{name}{_SUFFIX}_{node.output[0]}_{place}"
            before.append(helper.make_node("Cast", [name], [wide], name=f"{CAST}_{wide}", to=TensorProto.FLOAT))
    for place, name in enumerate(node.output):
        if name and kinds[name] == _HALF:
            node.output[place] = wide = f"{name}{_SUFFIX}"
            after.append(helper.make_node("Cast", [wide], [name], name=f"{CAST}_{wide}", to=_HALF))
    return [*before, node, *after]
