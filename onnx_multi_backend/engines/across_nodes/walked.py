# SPDX-License-Identifier: Apache-2.0
"""What the passes over several nodes ask of a model without local functions, found once for all of them."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

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
    def fixed(self) -> Mapping[str, TensorProto | None]:
        """`fixed_values`."""
        return fixed_values(self.graphs)

    @functools.cached_property
    def ahead(self) -> Mapping[str, TensorProto | None]:
        """The same without what is computed of the shapes of inputs of which no size is declared."""
        given = (value for value in self.flat.graph.input if value.name not in self.several)
        shapes = {value.name: value.type.tensor_type.shape.dim for value in given}
        return fixed_values(
            self.graphs, open_inputs={n for n, dims in shapes.items() if not any(map(_is_declared, dims))}
        )

    @functools.cached_property
    def stored(self) -> Mapping[str, TensorProto | None]:
        """The same without what is computed of shapes, which a run may tell."""
        return fixed_values(self.graphs, shapes=False)

    def array(self, name: str) -> np.ndarray | None:
        """What a stored constant holds; None for any other value, and where it was not read."""
        tensor = self.fixed.get(name)
        return numpy_helper.to_array(tensor) if tensor is not None and tensor.data_type and is_whole(tensor) else None

    @functools.cached_property
    def makers(self) -> Mapping[str, NodeProto]:
        """`makers_of`."""
        return makers_of(self.graphs)

    @functools.cached_property
    def readers(self) -> list[Mapping[str, list[NodeProto]]]:
        """The nodes that read each value, for each graph."""
        return [readers_of(graph.node) for graph in self.graphs]

    @functools.cached_property
    def several(self) -> set[str]:
        """`names_of_several`."""
        return names_of_several(self.graphs)


def walked_of(contents: Contents) -> Walked:
    """What is known of a model that is not to be changed meanwhile."""
    kept = kept_beside(contents.model)
    if "walked" not in kept:
        kept["walked"] = Walked(typed_of(contents.model))
    walked: Walked = kept["walked"]
    return walked


def readers_of(nodes: Iterable[NodeProto]) -> Mapping[str, list[NodeProto]]:
    """The nodes that read each value."""
    readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in nodes:
        for name in node.input:
            readers[name].append(node)
    return readers


def _is_declared(size: TensorShapeProto.Dimension) -> bool:
    return size.HasField("dim_value")


def fixed_values(
    graphs: Sequence[GraphProto], *, shapes: bool = True, open_inputs: Collection[str] = ()
) -> dict[str, TensorProto | None]:
    """What OpenVINO has computed before anything runs, by name; None for what is no stored tensor and may have several elements.

    It makes constants of the defaults of inputs, too.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        As `inner_first` has them.
    shapes : bool
        Whether the shapes count, as numbers. It knows those that are declared, and a run tells the others.
    open_inputs : collection of str, optional
        Inputs of the model whose shapes do not count.
    """
    alike = set(open_inputs)
    fixed: dict[str, TensorProto | None] = {t.name: t for graph in graphs for t in graph.initializer}
    for graph in reversed(graphs):  # the outer ones first
        for node in graph.node:
            if not node.output:
                continue
            operator = "" if canonical(node.domain) else node.op_type
            if operator == "Constant":
                held = node.attribute[0] if len(node.attribute) == 1 else None
                fixed[node.output[0]] = held.t if held is not None and held.HasField("t") else None
            elif operator in ("Shape", "Size"):
                if shapes and node.input[0] not in alike:
                    fixed[node.output[0]] = _NUMBER
            elif operator in _ALIKE and node.input and node.input[0] in alike:
                alike.add(node.output[0])
            elif operator in _ALIKE and node.input and node.input[0] in fixed:
                fixed[node.output[0]] = fixed[node.input[0]]
            elif node.input and all(name in fixed for name in node.input if name):
                read = [fixed[name] for name in node.input if name]
                one = node.op_type not in _GROWING and all(t is not None and math.prod(t.dims) == 1 for t in read)
                fixed.update(dict.fromkeys(filter(None, node.output), _NUMBER if one else None))
    return fixed


def makers_of(graphs: Sequence[GraphProto]) -> dict[str, NodeProto]:
    """The node that makes each value, but for names that mean several: following them from graph to graph could go round in a circle."""
    left_out = names_of_several(graphs)
    left_out.update(given.name for graph in graphs for given in graph.input)
    left_out.update(given.name for graph in graphs for given in graph.initializer)
    made = {name: node for graph in graphs for node in graph.node for name in node.output if name}
    return {name: node for name, node in made.items() if name not in left_out}


def names_of_several(graphs: Iterable[GraphProto]) -> set[str]:
    """The names that mean several values, in graphs beside each other or in one inside another."""
    seen: set[str] = set()
    several: set[str] = set()
    for graph in graphs:
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own.update(name for node in graph.node for name in node.output if name)
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
