# SPDX-License-Identifier: Apache-2.0
"""Hiding from onnx's inference what is too long to be a shape, and weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend.models.graph_walk import may_hold_graphs
from onnx_multi_backend.models.skeleton import copy_without_weights

#: The elements of one value, and of all of them, that onnx may take for shapes.
_LONGEST = 4096
_ALL = 1 << 20
#: Of more elements, a tensor is not handed to onnx, which knows nothing more by its numbers.
_HEAVY = 1 << 14
#: A model with more such elements is copied piece by piece.
_MANY = 1 << 20

#: What is added to the operator of a node that onnx is not to know, or whose constant is left out.
_HIDDEN, _LONG = "_omb_hidden", "_omb_long"
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
#: What onnx follows integers from: these read a type alone.
_TELLING = frozenset({"Shape", "Size"})


class _Layout(NamedTuple):
    """Where in a graph there is what is looked for.

    Attributes
    ----------
    outer : int
        The place of the graph around it; its own for the main graph.
    first : int
        The number of its first node: nodes are counted through all graphs.
    holding : list of int
        The places of nodes that hold graphs.
    following : list of (int, list of str)
        The numbers of the nodes that onnx follows integers through, and what they read.
    lengths : dict of str to int
        As how many dimensions onnx would follow what such nodes read, as far as that is known: of constants, then of what types tell.
    """

    outer: int
    first: int
    holding: list[int]
    following: list[tuple[int, list[str]]]
    lengths: dict[str, int]


class Followed:
    """The nodes of a model that onnx follows integers through: found once, and asked about whenever more types are known.

    Attributes
    ----------
    follows : bool
        Whether there are any, or any that tell a shape.
    """

    def __init__(self, graph: GraphProto) -> None:
        self.follows = False
        self._layouts: list[_Layout] = []
        self._asked: set[str] = set()
        self._count = 0
        whole = self._add(graph, 0)
        for layout, each in zip(self._layouts, whole, strict=True):
            self._add_constants(each, layout)

    def _add(self, graph: GraphProto, outer: int) -> list[GraphProto]:
        following, telling = _following(), _following() | _TELLING
        layout = _Layout(outer, self._count, [], [], {})
        place = len(self._layouts)
        self._layouts.append(layout)
        graphs = [graph]
        inner: list[GraphProto] = []
        for i, node in enumerate(graph.node):
            operator = node.op_type
            if operator in telling:
                self.follows = True
                if operator in following:
                    read = list(filter(None, node.input))
                    layout.following.append((layout.first + i, read))
                    self._asked.update(read)
            if node.domain or may_hold_graphs(operator):
                layout.holding.append(i)
                inner += _inner(node)
        self._count += len(graph.node)
        for each in inner:
            graphs += self._add(each, place)
        return graphs

    def _add_constants(self, graph: GraphProto, layout: _Layout) -> None:
        asked, constants = self._asked, layout.lengths
        constants.update((name, _length_of(t)) for t in graph.initializer if (name := t.name) in asked)
        for node in graph.node:
            if node.op_type != "Constant" or asked.isdisjoint(node.output):
                continue
            if len(node.attribute) == 1 and node.attribute[0].HasField("t"):
                constants[node.output[0]] = _length_of(node.attribute[0].t)
        for value in graph.value_info if constants else ():  # onnx believes what is declared, whatever a constant holds
            if (name := value.name) in constants:
                constants[name] = max(constants[name], _length_in(value.type) or 0)

    def too_long(self, graph: GraphProto) -> list[int]:
        """The numbers of the nodes that would follow values which are too long, or may be; the graph has the types that are known."""
        budget, found = _Budget(), []
        types: list[dict[str, TypeProto]] = []
        for layout, typed in zip(self._layouts, self._graphs(graph), strict=True):
            asked, lengths = self._asked, layout.lengths
            own = {name: v.type for v in (*typed.value_info, *typed.input, *typed.output) if (name := v.name) in asked}
            around = types[layout.outer] if types else {}
            types.append({**around, **own} if around else own)
            if types[:-1]:
                lengths.update(
                    (n, size)
                    for n, size in self._layouts[layout.outer].lengths.items()
                    if n not in own and n not in lengths
                )
            for number, read in layout.following:
                if not all(budget.takes(name, self._length(name, lengths, types[-1])) for name in read):
                    found.append(number)
        return found

    def _length(self, name: str, lengths: dict[str, int], types: Mapping[str, TypeProto]) -> int | None:
        if name in lengths:
            return lengths[name]
        length = _length_in(types.get(name))
        if length is not None:
            lengths[name] = length
        return length

    def hiding(self, model: ModelProto, typed: ModelProto, hidden: Sequence[int]) -> ModelProto:
        """A copy whose nodes of these numbers are of an operator that onnx does not know, the types of their outputs given."""
        copy = ModelProto()
        copy.CopyFrom(model)
        for graph, known, places in zip(
            self._graphs(copy.graph), self._graphs(typed.graph), self._places(hidden), strict=True
        ):
            if not places:
                continue
            nodes = [graph.node[place] for place in places]
            made = {name for node in nodes for name in node.output}
            types = {name: v.type for v in (*known.value_info, *known.output) if (name := v.name) in made}
            declared = {name: v for v in (*graph.value_info, *graph.output) if (name := v.name) in made}
            for node in nodes:
                node.op_type += _HIDDEN
                for name in node.output:
                    if name in declared:
                        declared[name].type.CopyFrom(types[name])
                    elif name in types:
                        graph.value_info.add(name=name, type=types[name])
        return copy

    def shown(self, model: ModelProto, hidden: Sequence[int]) -> ModelProto:
        """Undo `hiding` in place, the types of values kept."""
        for graph, places in zip(self._graphs(model.graph), self._places(hidden), strict=True):
            for place in places:
                node = graph.node[place]
                node.op_type = node.op_type.removesuffix(_HIDDEN)
        return model

    def _places(self, hidden: Sequence[int]) -> Iterator[list[int]]:
        """Of nodes by their numbers, those of each graph by their places in it."""
        firsts = [layout.first for layout in self._layouts]
        for first, end in zip(firsts, [*firsts[1:], self._count], strict=True):
            yield [number - first for number in hidden if first <= number < end]

    def _graphs(self, graph: GraphProto) -> Iterator[GraphProto]:
        """The graphs in their order."""
        layouts = iter(self._layouts)

        def within(each: GraphProto) -> Iterator[GraphProto]:
            yield each
            for place in next(layouts).holding:
                for inner in _inner(each.node[place]):
                    yield from within(inner)

        return within(graph)


class _Budget:
    """How many elements may still be followed."""

    def __init__(self) -> None:
        self.left = _ALL
        self.counted: set[str] = set()

    def takes(self, name: str, size: int | None) -> bool:
        """Whether a value may be followed; None: nobody knows how long it is."""
        if not size:
            return size is not None
        if size > _LONGEST or size > self.left:
            return False
        if name not in self.counted:
            self.counted.add(name)
            self.left -= size
        return True


def _length_of(tensor: TensorProto) -> int:
    """As how many dimensions onnx would follow a constant."""
    if tensor.data_type not in _INTEGERS or len(tensor.dims) > 1:
        return 0
    return int(tensor.dims[0]) if tensor.dims else 1


def _length_in(found: TypeProto | None) -> int | None:
    """As how many dimensions onnx would follow a value of a type; None where that is not known yet."""
    if found is None or not found.WhichOneof("value"):
        return None
    if not found.HasField("tensor_type"):
        return 0
    if not found.tensor_type.HasField("shape"):
        return None
    dims = found.tensor_type.shape.dim
    if len(dims) != 1:
        return 0
    return dims[0].dim_value if dims[0].HasField("dim_value") else None


def without_long_constants(model: ModelProto) -> tuple[ModelProto, bool]:
    """The model, its long integer constants and its weights replaced by their types, and whether there were any."""
    if not any(_is_long(t) for g in _graphs(model.graph) for t in _constants(g)):
        return model, False
    copy = ModelProto()
    dropped = {t.name for t in model.graph.initializer if _is_long(t)}
    if sum(math.prod(t.dims) for t in model.graph.initializer if t.name in dropped) > _MANY:
        copy_without_weights(model, copy, dropped, frozenset())
    else:
        copy.CopyFrom(model)
    for graph, whole in zip(_graphs(copy.graph), _graphs(model.graph), strict=True):
        declared = {v.name for v in (*graph.input, *graph.value_info)}
        kept = [t for t in graph.initializer if not _is_long(t)]
        long = [(t.name, t) for t in whole.initializer if _is_long(t)]
        for node in graph.node:
            if node.op_type == "Constant" and any(_is_long(a.t) for a in node.attribute):
                long += [(node.output[0], a.t) for a in node.attribute]
                node.op_type += _LONG
        graph.value_info.extend(
            helper.make_tensor_value_info(name, t.data_type, list(t.dims)) for name, t in long if name not in declared
        )
        for node in graph.node:
            if node.op_type.endswith(_LONG):
                del node.attribute[:]
        del graph.initializer[:]
        graph.initializer.extend(kept)
    return copy, True


def restored(typed: ModelProto, model: ModelProto) -> ModelProto:
    """Undo `without_long_constants`, the types of values kept."""
    for graph, whole in zip(_graphs(typed.graph), _graphs(model.graph), strict=True):
        del graph.initializer[:]
        graph.initializer.extend(whole.initializer)
        for node, own in zip(graph.node, whole.node, strict=True):
            if node.op_type.endswith(_LONG):
                node.CopyFrom(own)
    return typed


def _is_long(tensor: TensorProto) -> bool:
    """Whether onnx may follow it, which takes long, or it takes long to hand it over."""
    integers = tensor.data_type in _INTEGERS and len(tensor.dims) < 2 and any(d > _LONGEST for d in tensor.dims)
    return integers or math.prod(tensor.dims) > _HEAVY


def _constants(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (a.t for a in node.attribute if a.HasField("t"))


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph, then the graphs in its nodes' attributes: always in the same order."""
    yield graph
    for node in graph.node:
        if node.domain or may_hold_graphs(node.op_type):
            for inner in _inner(node):
                yield from _graphs(inner)


def _inner(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


@functools.cache
def _following() -> frozenset[str]:
    """The operators that onnx follows integers through, by themselves or in the bodies that they stand for."""
    schemas: Any = onnx.defs.get_all_schemas_with_history()  # onnx's stubs lack `has_function`
    found = {
        s.name
        for s in schemas
        if s.has_data_propagation_function or (s.has_function and not s.has_type_and_shape_inference_function)
    }
    return frozenset(found - _TELLING)
