# SPDX-License-Identifier: Apache-2.0
"""What is computed of float16 constants alone, which the OpenVINO provider reads from other memory.

ONNX Runtime computes ahead what its CPU provider has kernels for. Of float16 it has few, so such nodes are left to the OpenVINO
provider. Where that does not take the whole model, results of such nodes alone were seen to be of other memory (1.24.1) if ONNX Runtime
keeps a constant outside the graph, or if other nodes are in their group, whose inputs have sizes known only at run time: then the
provider computes constants itself before OpenVINO compiles the group. So it does on ``AUTO``, and where it keeps what it compiled. Elsewhere
they are right, and are left as they are.
Source: the constructor of ``BasicBackend`` in ONNX Runtime's OpenVINO provider.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping

from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.chosen_branches import KEPT_INSIDE, of_branches, stored_bytes
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Payload, RefusedError
from onnx_multi_backend.models.graph_walk import canonical, put_back, subgraphs

_HALF = TensorProto.FLOAT16
_SUFFIX = "/omb_half"
#: The first opset that has Where.
_WHERE = 9
#: Options of the provider with which OpenVINO gets a group as it is.
_PLAIN_OPTIONS = frozenset({"device_type", "precision", "load_config", "num_of_threads", "num_streams"})


def passes_groups_on(device: str, provider_options: Collection[str], session_options: Collection[str]) -> bool:
    """Whether OpenVINO gets a group of nodes as it is, where no constant is outside the graph and all sizes are known.

    Parameters
    ----------
    device : str
    provider_options, session_options : collection of str
        The names of those that are given.
    """
    contexts = any(name.startswith("ep.") for name in session_options)
    return device == "CPU" and not contexts and _PLAIN_OPTIONS.issuperset(provider_options)


def computed_ahead(payload: Payload, *, passes_on: bool) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with each such node on float32 between Casts, where one may be wrong: ONNX Runtime computes them all ahead.

    Parameters
    ----------
    passes_on : bool
        What `passes_groups_on` says.

    Raises
    ------
    RefusedError
        Nothing can be computed ahead of such a model; see `of_branches`.
    """
    facts = payload.adapted.facts
    if _HALF not in facts.contents.tensor_types or facts.model.functions or not facts.nodes_of_constants:
        return payload, ()
    types = _types(payload.adapted.proto)
    kinds = {name: kind.tensor_type.elem_type for name, kind in types.items()}
    halves = [node for node in facts.nodes_of_constants if _is_half(node, kinds)]
    if passes_on and _all_inside(facts, types) and _stand_apart(halves, facts):
        return payload, ()
    if halves and of_branches(facts.contents):
        words = "what is computed of float16 constants alone is read from other memory, and ONNX Runtime must compute nothing ahead beside its Ifs"
        raise RefusedError(words, lacks_kernel=True)
    changing = {name for node in halves for name in node.output if name}
    copy = ModelProto()
    copy.CopyFrom(payload.adapted.proto)
    nodes: list[NodeProto] = []
    changed: list[str] = []
    for node in copy.graph.node:
        if changing.isdisjoint(node.output):
            nodes.append(node)
        else:
            nodes += _between_casts(node, kinds, sloped=facts.opset >= _WHERE)
            changed.append(f"{node.op_type} {node.name or node.output[0]!r}")
    if not changed:
        return payload, ()
    put_back(copy.graph, nodes)
    reason = "the OpenVINO execution provider reads what is computed of float16 constants alone from other memory"
    changes = tuple(Adaptation("half_constants", where, "computed ahead, in float32", reason) for where in changed)
    casts = {node.name for node in copy.graph.node if node.name.startswith(CAST)}
    return payload.changed(copy, *changes, inserted=casts), changes


def takes_all(model: ModelProto, placement: Collection[NodePlacement]) -> bool:
    """Whether other providers than the CPU's run each node of a model, and none was computed ahead.

    ONNX Runtime may list no node of an operator that its CPU provider lacks for the type, and computes in another one.
    """
    placed = Counter((canonical(node.domain), node.op_type) for node in placement if node.provider != providers.CPU)
    nodes = Counter((canonical(node.domain), node.op_type) for node in model.graph.node if node.op_type != "Constant")
    return placed.total() == len(placement) and nodes <= placed


def _types(model: ModelProto) -> Mapping[str, TypeProto]:
    """The types of the values of the main graph, as far as they are known."""
    graph = infer(model).graph
    types = {value.name: value.type for value in (*graph.value_info, *graph.output)}
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    made = (node for node in graph.node if node.op_type == "Constant" and node.attribute)
    tensors += [(n.output[0], n.attribute[0].t) for n in made if n.attribute[0].HasField("t")]
    types.update((name, helper.make_tensor_type_proto(t.data_type, t.dims)) for name, t in tensors)
    return types


def _all_inside(facts: Facts, types: Mapping[str, TypeProto]) -> bool:
    """Whether ONNX Runtime keeps all constants in the graph, those too that it computes ahead."""
    shapes = {name for node in facts.contents.of("Shape") for name in node.output}
    if facts.contents.holding or shapes - facts.computed_of_constants:  # what is computed of those is not followed
        return False
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in facts.contents.tensors):
        return False
    return all(_bytes(types.get(name)) <= KEPT_INSIDE for name in facts.known | facts.computed_of_constants if name)


def _bytes(kind: TypeProto | None) -> float:
    """How many bytes a tensor has, or an optional one; infinitely many where that is not known."""
    while kind is not None and kind.HasField("optional_type"):
        kind = kind.optional_type.elem_type
    if kind is None or not kind.tensor_type.HasField("shape") or not kind.tensor_type.elem_type:
        return math.inf
    dims = kind.tensor_type.shape.dim
    sizes = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else math.inf for dim in dims]
    return math.prod(sizes) * stored_bytes(kind.tensor_type.elem_type)


def _stand_apart(nodes: Collection[NodeProto], facts: Facts) -> bool:
    """Whether nothing that an input decides reads from such nodes, or from what reads from them: the provider groups what does."""
    names = {name for node in nodes for name in (*node.input, *node.output)} & facts.computed_of_constants
    seen = 0
    while len(names) > seen:
        seen = len(names)
        for node in facts.nodes_of_constants:
            if not names.isdisjoint(found := facts.computed_of_constants.intersection((*node.input, *node.output))):
                names |= found
    within = {id(node) for node in facts.nodes_of_constants}
    return all(id(node) in within or names.isdisjoint(node.input) for node in facts.contents.nodes)


def _is_half(node: NodeProto, kinds: Mapping[str, int]) -> bool:
    """Whether a node reads float16, and the type of each of its results is known. A Cast is computed ahead as it is."""
    if canonical(node.domain) or node.op_type in ("Cast", "Constant") or any(True for _ in subgraphs(node)):
        return False
    return any(kinds.get(name) == _HALF for name in node.input) and all(kinds.get(name) for name in node.output if name)


def _between_casts(node: NodeProto, kinds: Mapping[str, int], *, sloped: bool) -> list[NodeProto]:
    before: list[NodeProto] = []
    after: list[NodeProto] = []
    for place, name in enumerate(node.input):
        if kinds.get(name) == _HALF:
            node.input[place] = wide = f"{name}{_SUFFIX}_{node.output[0]}_{place}"
            before.append(helper.make_node("Cast", [name], [wide], name=f"{CAST}_{wide}", to=TensorProto.FLOAT))
    for place, name in enumerate(node.output):
        if name and kinds[name] == _HALF:
            node.output[place] = wide = f"{name}{_SUFFIX}"
            after.append(helper.make_node("Cast", [wide], [name], name=f"{CAST}_{wide}", to=_HALF))
    return [*before, *(_sloped(node) if sloped and node.op_type == "PRelu" else [node]), *after]


def _sloped(node: NodeProto) -> list[NodeProto]:
    """A PRelu as ``x < 0 ? slope * x : x``: ONNX Runtime's kernel (before 1.31) adds 0 times an infinite number to it."""
    x, slope, made = *node.input, node.output[0]
    zero, below, product = (f"{made}/{name}" for name in ("zero", "below", "product"))
    value = helper.make_tensor(zero, TensorProto.FLOAT, [], [0.0])
    return [
        helper.make_node("Constant", [], [zero], name=zero, value=value),
        helper.make_node("Less", [x, zero], [below], name=below),
        helper.make_node("Mul", [slope, x], [product], name=product),
        helper.make_node("Where", [below, product, x], [made], name=node.name),
    ]
