# SPDX-License-Identifier: Apache-2.0
"""Models of one node, cut out of a model: what an engine is asked about, and what a rule rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, helper

#: A tensor above this many bytes is no constant that a model of one node carries along.
_SMALL = 4096


@dataclass(frozen=True)
class Scope:
    """What is known of the values that a graph's nodes may read.

    Attributes
    ----------
    types : dict of str to TypeProto
    constants : dict of str to TensorProto
        The small ones that are known before anything runs.
    """

    types: dict[str, TypeProto]
    constants: dict[str, TensorProto]

    def inside(self, graph: GraphProto) -> Scope:
        """The scope of a graph whose outer scope this is; the graph's types have been inferred."""
        values = {
            v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output) if v.type.WhichOneof("value")
        }
        types, constants = {**self.types, **values}, {k: v for k, v in self.constants.items() if k not in values}
        inputs = {v.name for v in graph.input}
        for tensor in graph.initializer:
            types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            # An initializer that is an input too is a default; what lies in another file cannot be read.
            if (
                tensor.name not in inputs
                and tensor.data_location != TensorProto.EXTERNAL
                and tensor.ByteSize() < _SMALL
            ):
                constants[tensor.name] = tensor
        for node in graph.node:
            if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t"):
                constants[node.output[0]] = node.attribute[0].t
        return Scope(types, constants)


def infer(model: ModelProto) -> ModelProto:
    """A copy of the model with the types of its values, as far as onnx can tell."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):  # above 2 GB, or nothing can be inferred
        return model


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def single_node_model(
    node: NodeProto, scope: Scope, opsets: Iterable[OperatorSetIdProto], ir_version: int
) -> ModelProto | None:
    """Cut a node out: its inputs become ``i0``, ``i1``..., its outputs ``o0``, ``o1``..., so that equal nodes are equal.

    Returns None where the type of an input is not known, or a subgraph reads values from outside.
    """
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute) and _captures(node):
        return None
    names = list(dict.fromkeys(name for name in node.input if name))
    if any(name not in scope.types and name not in scope.constants for name in names):
        return None
    inputs = {name: f"i{i}" for i, name in enumerate(names)}
    outputs = [f"o{i}" if name else "" for i, name in enumerate(node.output)]
    alone = NodeProto()
    alone.CopyFrom(node)
    alone.name = alone.doc_string = ""
    del alone.input[:], alone.output[:], alone.metadata_props[:]
    alone.input.extend(inputs.get(name, "") for name in node.input)
    alone.output.extend(outputs)
    graph = GraphProto(name="single", node=[alone])
    for name, short in inputs.items():
        if name in scope.constants:
            tensor = graph.initializer.add()
            tensor.CopyFrom(scope.constants[name])
            tensor.name = short
        else:
            graph.input.add(name=short).type.CopyFrom(scope.types[name])
    for name, short in zip(node.output, outputs, strict=True):
        if short:
            value = graph.output.add(name=short)
            if name in scope.types:
                value.type.CopyFrom(scope.types[name])
    return ModelProto(ir_version=ir_version, graph=graph, opset_import=opsets)


def _captures(node: NodeProto) -> bool:
    """Whether a subgraph of the node reads a value from outside."""
    return any(_free(graph, frozenset()) for graph in subgraphs(node))


def _free(graph: GraphProto, outer: frozenset[str]) -> bool:
    known = outer | {v.name for v in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        if any(name and name not in known for name in node.input):
            return True
        if any(_free(inner, known) for inner in subgraphs(node)):
            return True
        known |= set(node.output)
    return any(value.name not in known for value in graph.output)


def scope_of(model: ModelProto) -> Scope:
    """The scope of a main graph whose types have been inferred."""
    return Scope({}, {}).inside(model.graph)


def canonical(domain: str) -> str:
    """The name of a domain in schemas: the default domain is empty."""
    return "" if domain == "ai.onnx" else domain


def opset_versions(model: ModelProto) -> dict[str, int]:
    """The opset of each domain that a model imports."""
    return {canonical(o.domain): o.version for o in model.opset_import}


def opset_imports(versions: Mapping[str, int]) -> list[OperatorSetIdProto]:
    """The imports for these opsets."""
    return [helper.make_opsetid(domain, version) for domain, version in versions.items()]
