# SPDX-License-Identifier: Apache-2.0
"""What the passes over several nodes ask of a model without local functions, found once for all of them."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, numpy_helper

from onnx_multi_backend.adapt.single_node import Typed, kept_beside, typed_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies, canonical
from onnx_multi_backend.models.tensors import is_whole

#: Of one element.
_NUMBER = TensorProto()
#: What has the shape of what it reads.
_ALIKE = frozenset({"Cast", "Identity"})
#: What may make several elements of one.
_GROWING = frozenset(
    {"Concat", "ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"}
)


class NodeView(NamedTuple):
    """What a node reads and makes, in lists: those of a protobuf message take five times as long to look at.

    Attributes
    ----------
    proto : onnx.NodeProto
    operator : str
        Empty for one of another domain than the default one.
    input, output : list of str
    """

    proto: NodeProto
    operator: str
    input: list[str]
    output: list[str]


class _Fixed(NamedTuple):
    """`Walked.fixed`, and which of these are computed of shapes, and of the shapes of some inputs."""

    values: dict[str, TensorProto | None]
    of_shapes: set[str]
    of_open_shapes: set[str]

    def without(self, names: Collection[str]) -> Mapping[str, TensorProto | None]:
        """The others."""
        return {name: tensor for name, tensor in self.values.items() if name not in names} if names else self.values


class Walked:
    """A model without local functions; see `walked_of`. The graphs are those of `flat`, as `inner_first` has them."""

    def __init__(self, typed: Typed) -> None:
        self._typed = typed

    @property
    def flat(self) -> ModelProto:
        """The model."""
        return self._typed.flat

    @functools.cached_property
    def graphs(self) -> list[GraphProto]:
        """Its graphs."""
        return inner_first(self.flat.graph)

    @functools.cached_property
    def typed_graphs(self) -> list[GraphProto]:
        """The same with the types of their values."""
        return inner_first(self._typed.model.graph)

    @functools.cached_property
    def types(self) -> Mapping[str, TypeProto.Tensor]:
        """`tensor_types` of these."""
        return tensor_types(self.typed_graphs)

    @functools.cached_property
    def declared(self) -> Mapping[str, TypeProto.Tensor]:
        """The types that the model declares, which may be wrong."""
        return tensor_types(self.graphs)

    def told(self, name: str) -> TypeProto.Tensor | None:
        """The type of a value as the model declares it, where that tells all sizes; else as inference tells, which takes long."""
        kind = self.declared.get(name) if name not in self.several else None
        tells_all = kind is not None and kind.HasField("shape") and all(map(_is_declared, kind.shape.dim))
        return kind if tells_all else self.types.get(name)

    def rank(self, name: str) -> int | None:
        """How many axes a value is declared to have, or has by inference."""
        kind = self.declared.get(name) if name not in self.several else None
        if kind is None or not kind.HasField("shape"):
            kind = self.types.get(name)
        return len(kind.shape.dim) if kind is not None and kind.HasField("shape") else None

    @functools.cached_property
    def views(self) -> list[list[NodeView]]:
        """The nodes of each graph."""
        return [_views(graph) for graph in self.graphs]

    @functools.cached_property
    def _fixed(self) -> _Fixed:
        given = (value for value in self.flat.graph.input if value.name not in self.several)
        shapes = {value.name: value.type.tensor_type.shape.dim for value in given}
        return _fixed(
            self.graphs, self.views, open_inputs={n for n, dims in shapes.items() if not any(map(_is_declared, dims))}
        )

    @property
    def fixed(self) -> Mapping[str, TensorProto | None]:
        """What OpenVINO has computed before anything runs, by name; None for what is no stored tensor and may have several elements.

        It makes constants of the defaults of inputs, too. The shapes count, as numbers: it knows those that are declared, and a run tells the others.
        """
        return self._fixed.values

    @functools.cached_property
    def ahead(self) -> Mapping[str, TensorProto | None]:
        """The same without what is computed of the shapes of inputs of which no size is declared."""
        return self._fixed.without(self._fixed.of_open_shapes)

    @functools.cached_property
    def stored(self) -> Mapping[str, TensorProto | None]:
        """The same without what is computed of shapes, which a run may tell."""
        return self._fixed.without(self._fixed.of_shapes)

    def array(self, name: str) -> np.ndarray | None:
        """What a stored constant holds; None for any other value, and where it was not read."""
        tensor = self.fixed.get(name)
        return numpy_helper.to_array(tensor) if tensor is not None and tensor.data_type and is_whole(tensor) else None

    @functools.cached_property
    def makers(self) -> Mapping[str, NodeProto]:
        """The node that makes each value, but for names that mean several: following them from graph to graph could go round in a circle."""
        return _makers(self.graphs, self.views, self.several)

    @functools.cached_property
    def readers(self) -> list[Mapping[str, list[NodeProto]]]:
        """The nodes that read each value, for each graph."""
        found = list[Mapping[str, list[NodeProto]]]()
        for views in self.views:
            readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
            for node in views:
                for name in node.input:
                    readers[name].append(node.proto)
            found.append(readers)
        return found

    @functools.cached_property
    def several(self) -> set[str]:
        """The names that mean several values, in graphs beside each other or in one inside another."""
        return _several(self.graphs, self.views) if len(self.graphs) > 1 else set()


def walked_of(contents: Contents) -> Walked:
    """What is known of a model that is not to be changed meanwhile."""
    kept = kept_beside(contents.model)
    if "walked" not in kept:
        kept["walked"] = Walked(typed_of(contents.model))
    walked: Walked = kept["walked"]
    return walked


def _is_declared(size: TensorShapeProto.Dimension) -> bool:
    return size.HasField("dim_value")


def _views(graph: GraphProto) -> list[NodeView]:
    return [
        NodeView(node, "" if canonical(node.domain) else node.op_type, node.input[:], node.output[:])
        for node in graph.node
    ]


def _fixed(
    graphs: Sequence[GraphProto], views: Sequence[Sequence[NodeView]], open_inputs: Collection[str] = ()
) -> _Fixed:
    fixed: dict[str, TensorProto | None] = {t.name: t for graph in graphs for t in graph.initializer}
    of_shapes, of_open_shapes, alike = set[str](), set[str](), set(open_inputs)
    for node in (node for nodes in reversed(views) for node in nodes):  # the outer ones first
        operator, read = node.operator, node.input
        if not node.output:
            continue
        if operator == "Constant":
            attributes = node.proto.attribute
            held = attributes[0] if len(attributes) == 1 else None
            fixed[node.output[0]] = held.t if held is not None and held.HasField("t") else None
        elif operator in ("Shape", "Size"):
            fixed[node.output[0]] = _NUMBER
            of_shapes.add(node.output[0])
            if read[0] in alike:
                of_open_shapes.add(node.output[0])
        elif read and all(name in fixed for name in read if name):
            made = fixed[read[0]] if operator in _ALIKE and read[0] else _NUMBER if _is_number(node, fixed) else None
            fixed.update(dict.fromkeys(filter(None, node.output), made))
            for told in (of_shapes, of_open_shapes):
                if told and not told.isdisjoint(read):
                    told.update(filter(None, node.output))
        if operator in _ALIKE and read and read[0] in alike:
            alike.add(node.output[0])
            of_open_shapes.add(node.output[0])
    return _Fixed(fixed, of_shapes, of_open_shapes)


def _is_number(node: NodeView, fixed: Mapping[str, TensorProto | None]) -> bool:
    """Whether what a node makes of fixed values has one element."""
    read = [fixed[name] for name in node.input if name]
    return node.proto.op_type not in _GROWING and all(t is not None and math.prod(t.dims) == 1 for t in read)


def _makers(
    graphs: Sequence[GraphProto], views: Sequence[Sequence[NodeView]], several: Collection[str]
) -> dict[str, NodeProto]:
    left_out = set(several)
    left_out.update(given.name for graph in graphs for given in graph.input)
    left_out.update(given.name for graph in graphs for given in graph.initializer)
    return {
        name: node.proto for nodes in views for node in nodes for name in node.output if name and name not in left_out
    }


def _several(graphs: Sequence[GraphProto], views: Sequence[Sequence[NodeView]]) -> set[str]:
    seen: set[str] = set()
    several: set[str] = set()
    for graph, nodes in zip(graphs, views, strict=True):
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own.update(name for node in nodes for name in node.output if name)
        several |= seen & own
        seen |= own
    return several


def inner_first(graph: GraphProto) -> list[GraphProto]:
    """A graph of a model without local functions, and its subgraphs; the inner ones first, since a node is copied with them."""
    return [*(g for node in graph.node for body in bodies(node) for g in inner_first(body)), graph]


def tensor_types(graphs: Iterable[GraphProto]) -> dict[str, TypeProto.Tensor]:
    """The types of values, as far as they are known; of those that share a name, any."""
    values = (v for graph in graphs for v in (*graph.input, *graph.value_info, *graph.output))
    return {v.name: v.type.tensor_type for v in values if v.type.HasField("tensor_type")}
