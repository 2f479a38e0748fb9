# SPDX-License-Identifier: Apache-2.0
"""Around groups of nodes that OpenVINO's built-in provider (1.24.1) makes, of which one waits for itself.

It takes nodes in groups, those between two that it leaves to the CPU provider. A group of one node it joins to the next group, if that
reads it, though a node between them reads it too and is read there: a graph that goes in a circle. ONNX Runtime refuses it, and in the body of a
Loop or the like its process ends. So what both kinds of nodes read is computed twice, once for each kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from onnx import GraphProto, ModelProto, NodeProto, helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import Scope, Typed, opset_imports, opset_versions, reads, single_node_model
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back, subgraphs
from onnx_multi_backend.models.plausible import is_endless

#: Whether a provider takes a node, asked alone.
Takes = Callable[[Site], bool]

#: Where the shape is known, ONNX Runtime computes them before it asks a provider.
_OF_SHAPES = frozenset({"Shape", "Size"})
_RANDOM = frozenset(
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split()
)


def computed_twice(model: ModelProto, takes: Takes, *, bodies: bool) -> tuple[ModelProto, set[str]]:
    """A copy of a model in which no node is read by both kinds of nodes, and the names of the nodes that are new.

    Parameters
    ----------
    takes : callable
        Whether the provider takes a node.
    bodies : bool
        Whether that is done within the bodies of Loop and the like; otherwise in the main graph.
    """
    if (bodies and not any(True for _ in _bodies(model.graph))) or is_endless(Contents(model)):
        return model, set()
    typed = Typed(model)
    flat = typed.flat.graph
    if not any(map(_may_be_joined, _bodies(flat) if bodies else [flat])):
        return model, set()
    copy = ModelProto()
    copy.CopyFrom(typed.model)
    opsets = opset_imports(opset_versions(copy))

    def asked(node: NodeProto, scope: Scope) -> bool | None:
        single = single_node_model(node, scope, opsets, copy.ir_version)
        if single is None or not all(v.type.tensor_type.HasField("shape") for v in single.graph.input):
            return None
        for value in single.graph.input:  # a node is taken or not, whatever the elements are
            value.ClearField("doc_string")
        if node.op_type in _OF_SHAPES and not canonical(node.domain):
            _with_open_shape(single.graph)
        return takes(Site(single))

    added: set[str] = set()

    def visit(graph: GraphProto, outer: Scope, *, inside: bool) -> None:
        scope = outer.inside(graph)
        for body in (body for node in graph.node for body in subgraphs(node)) if bodies else ():
            visit(body, scope, inside=True)
        if inside is bodies and _may_be_joined(graph):
            added.update(_split(graph, lambda node: asked(node, scope)))

    visit(copy.graph, Scope({}, {}), inside=False)
    return (copy, added) if added else (model, added)


def _with_open_shape(graph: GraphProto) -> None:
    """Have a node that reads a shape read one that ONNX Runtime does not know: it computes the others before it asks a provider."""
    types = [(v.type.tensor_type.elem_type, len(v.type.tensor_type.shape.dim)) for v in graph.input]
    types += [(tensor.data_type, len(tensor.dims)) for tensor in graph.initializer]
    graph.ClearField("input")
    graph.ClearField("initializer")
    for name, (kind, rank) in zip(graph.node[0].input, types, strict=True):
        graph.input.append(helper.make_tensor_value_info(name, kind, [f"{name}_{i}" for i in range(rank)]))


def _bodies(graph: GraphProto) -> Iterator[GraphProto]:
    for node in graph.node:
        for body in subgraphs(node):
            yield body
            yield from _bodies(body)


def _may_be_joined(graph: GraphProto) -> bool:
    """Whether a node is read twice, and one that reads it is read too."""
    readers = _readers(graph)
    return any(len(found) > 1 and any(map(readers.__contains__, _made(graph, found))) for found in readers.values())


def _made(graph: GraphProto, places: list[int]) -> Iterator[str]:
    return (name for place in places for name in graph.node[place].output)


def _readers(graph: GraphProto) -> dict[str, list[int]]:
    """The places of the nodes that read a value which another node makes."""
    made = {name for node in graph.node if node.op_type != "Constant" for name in node.output if name}
    readers = defaultdict(list)
    for place, node in enumerate(graph.node):
        for name in made.intersection(reads(node)):
            readers[name].append(place)
    return readers


def _split(graph: GraphProto, asked: Callable[[NodeProto], bool | None]) -> set[str]:
    """Compute twice what nodes of both kinds read; the names of the new nodes."""
    readers = _readers(graph)
    originals = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    nodes: list[NodeProto] = []
    added = set()
    for place, node in enumerate(graph.node):
        nodes.append(node)
        found = sorted({reader for name in node.output for reader in readers.get(name, ())})
        if len(found) < 2 or _stays_one(node) or not any(map(readers.__contains__, _made(graph, found))):
            continue
        taken = {r: asked(originals[r]) if next(subgraphs(graph.node[r]), None) is None else None for r in found}
        if True not in taken.values() or all(taken.values()) or asked(originals[place]) is False:
            continue
        twin = NodeProto.FromString(node.SerializeToString())
        twin.name = f"{node.name or node.output[0]}{CAST}twice"
        for i, name in enumerate(node.output):
            twin.output[i] = f"{name}{CAST}twice" if name else ""
        for reader in (graph.node[r] for r, answer in taken.items() if answer):
            for i, name in enumerate(reader.input):
                if name and name in node.output:
                    reader.input[i] = f"{name}{CAST}twice"
        nodes.append(twin)
        added.add(twin.name)
    if added:
        put_back(graph, nodes)
    return added


def _stays_one(node: NodeProto) -> bool:
    return bool(canonical(node.domain)) or node.op_type in _RANDOM or next(subgraphs(node), None) is not None
