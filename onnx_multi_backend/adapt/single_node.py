# SPDX-License-Identifier: Apache-2.0
"""Models of one node, cut out of a model: what an engine is asked about, and what a rule rewrites."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, helper

from onnx_multi_backend.adapt.facts import SMALL_BYTES
from onnx_multi_backend.adapt.inferring.inference import infer as infer
from onnx_multi_backend.adapt.inferring.inference import infer_more
from onnx_multi_backend.adapt.inferring.inference import is_valid as is_valid
from onnx_multi_backend.adapt.intervals.hints import KNOWN, hint, read_hint
from onnx_multi_backend.adapt.intervals.ranges import Nested, ranges
from onnx_multi_backend.adapt.names import GUARDED, KERNEL, LEFT
from onnx_multi_backend.adapt.operation import Values
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.models.graph_walk import (
    FREE_INITIALIZERS,
    bodies,
    canonical,
    may_hold_graphs,
    put_back,
    subgraphs,
    tensors_of,
)
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import constant_tensor, is_whole


@dataclass(frozen=True)
class Scope:
    """What is known of the values that a graph's nodes may read.

    Attributes
    ----------
    types : dict of str to TypeProto
    constants : dict of str to TensorProto
        The small ones that are known before anything runs.
    values : mapping of str to Value
        What the elements lie between.
    large : frozenset of str
        The other values that are known before anything runs.
    nested : dict
        The values of the subgraphs that have been looked at with this graph.
    """

    types: dict[str, TypeProto]
    constants: dict[str, TensorProto]
    values: Values = field(default_factory=dict)
    large: frozenset[str] = frozenset()
    nested: Nested = field(default_factory=dict)

    def inside(self, graph: GraphProto) -> Scope:
        """The scope of a graph whose outer scope this is; the graph's types have been inferred."""
        values = {
            v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output) if v.type.WhichOneof("value")
        }
        types, constants = {**self.types, **values}, {k: v for k, v in self.constants.items() if k not in values}
        inputs = {v.name for v in graph.input}
        large = set(self.large - values.keys())
        for tensor in graph.initializer:
            types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            if tensor.name in inputs:  # a default
                continue
            if tensor.ByteSize() < SMALL_BYTES and is_whole(tensor):
                constants[tensor.name] = tensor
            else:
                large.add(tensor.name)
        for node in graph.node:
            if node.op_type == "Identity" and node.input and not canonical(node.domain):
                read, made_of_it = node.input[0], node.output[0]
                if read in constants:
                    constants[made_of_it] = constants[read]
                elif read in large:
                    large.add(made_of_it)
                continue
            made = constant_tensor(node) if node.op_type == "Constant" else None
            if made is None:
                continue
            if made.ByteSize() >= SMALL_BYTES or not is_whole(made):
                types[node.output[0]] = helper.make_tensor_type_proto(made.data_type, list(made.dims))
                large.add(node.output[0])
            else:
                constants[node.output[0]] = made
        large |= {v.name for v in graph.input if v.doc_string == KNOWN}
        seen = self.nested.get(id(graph))
        if seen is not None and seen[0] is graph:
            return Scope(types, constants, seen[1], frozenset(large), self.nested)
        nested: Nested = {}
        hinted = {v.name: value for v in graph.input if (value := read_hint(v)) is not None}
        found = ranges(graph, self.values, inputs=hinted, nested=nested)
        return Scope(types, constants, found, frozenset(large), nested)


class Typed:
    """A model without local functions, and what is known of its values; each is made once, when it is asked for.

    `typed_of` has one for all that look at the same model.
    """

    def __init__(self, model: ModelProto) -> None:
        self._given = model

    @functools.cached_property
    def flat(self) -> ModelProto:
        """The model without local functions."""
        return inlined(self._given)

    @functools.cached_property
    def model(self) -> ModelProto:
        """The same with its types: not to be changed."""
        return infer(self.flat)

    @functools.cached_property
    def values(self) -> Values:
        """What `ranges` tells of its main graph."""
        return ranges(self.model.graph)

    def scope_of(self, graph: GraphProto) -> Scope:
        """The scope around a copy of its main graph, in which these values need not be found again."""
        return Scope({}, {}, nested={id(graph): (graph, self.values)})


class _Carried(Typed):
    """The same of a model that was made of another one, whose values it has, and others."""

    def __init__(self, model: ModelProto, before: ModelProto) -> None:
        super().__init__(model)
        self.before = before

    @functools.cached_property
    def model(self) -> ModelProto:
        return infer_more(self.flat, self.before)


class _Shared(NamedTuple):
    """What is known of a model, and what others keep beside it."""

    typed: Typed
    kept: dict[str, Any]


#: What was made in this context, by the model that it is of.
_shared: ContextVar[dict[int, _Shared] | None] = ContextVar("shared", default=None)


@contextlib.contextmanager
def types_shared() -> Iterator[None]:
    """Infer the types of a model once for all who ask, and drop them at the end: they hold a copy of it."""
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def typed_of(model: ModelProto) -> Typed:
    """What is known of a model that is not to be changed meanwhile; see `types_shared`."""
    return _shared_of(model).typed


def carry_types(before: ModelProto, after: ModelProto) -> None:
    """Have the types of a model's values be those of a changed copy too, where they are known; what has a name keeps its meaning in it.

    Only within `types_shared`, and of models without graphs in graphs.
    """
    made = _shared.get()
    shared = made.get(id(before)) if made is not None else None
    if made is None or shared is None or after.functions or any(any(bodies(node)) for node in after.graph.node):
        return
    if "model" in vars(shared.typed):
        known = shared.typed.model
    elif isinstance(shared.typed, _Carried):
        known = shared.typed.before
    else:
        return
    made[id(after)] = _Shared(_Carried(after, known), {})


def kept_beside(model: ModelProto) -> dict[str, Any]:
    """Where others keep what they make of a model, by their names for it, as long as `types_shared` lasts."""
    return _shared_of(model).kept


def _shared_of(model: ModelProto) -> _Shared:
    made = _shared.get()
    shared = made.get(id(model)) if made is not None else None
    if shared is None:
        shared = _Shared(Typed(model), {})  # which holds the model, so that no other one gets its number
        if made is not None:
            made[id(model)] = shared
    return shared


def captures(node: NodeProto) -> list[str]:
    """The values that a node's subgraphs read from outside, each once; some may be its inputs too."""
    captured: dict[str, None] = {}
    for graph in subgraphs(node):
        _captures(graph, frozenset(), captured)
    return list(captured)


def reads(node: NodeProto) -> list[str]:
    """The values that a node reads, each once: its inputs, then what its subgraphs read from outside."""
    inside = captures(node) if node.domain or may_hold_graphs(node.op_type) else ()
    return list(dict.fromkeys([*filter(None, node.input), *inside]))


def needed_in(graph: GraphProto) -> set[str]:
    """The values that the results of a graph are computed from."""
    needed = {value.name for value in graph.output}
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(reads(node))
    return needed


def without_unread(graph: GraphProto) -> None:
    """Take out the nodes that no result of a graph needs."""
    needed = needed_in(graph)
    put_back(graph, [node for node in graph.node if not needed.isdisjoint(node.output)])


def single_node_model(
    node: NodeProto,
    scope: Scope,
    opsets: Iterable[OperatorSetIdProto],
    ir_version: int,
    *,
    untyped: bool = False,
) -> ModelProto | None:
    """Cut a node out: what it `reads` becomes ``i0``, ``i1``..., its outputs ``o0``, ``o1``...

    So equal nodes are equal, sizes that onnx's inference gave a number included. Returns None where the type of a value that it reads is not known,
    or the node holds values that lie in another file, unless `untyped` values are welcome: such a model is to be looked at only.
    """
    names = reads(node)
    if not untyped and any(name not in scope.types and name not in scope.constants for name in names):
        return None
    if not untyped and any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors_of(node)):
        return None  # an engine would look for the file where it runs
    inputs = {name: f"i{i}" for i, name in enumerate(names)}
    outputs = {name: f"o{i}" for i, name in enumerate(node.output) if name}
    inner: dict[str, str] = {}
    alone = renamed(
        node, lambda name: inputs.get(name) or outputs.get(name) or inner.setdefault(name, f"n{len(inner)}")
    )
    alone.doc_string = ""
    alone.name = "_".join(word for word in (GUARDED, KERNEL, LEFT) if word in str(node.name))
    del alone.metadata_props[:]
    graph = GraphProto(name="single", node=[alone])
    for name, short in inputs.items():
        if name in scope.constants:
            tensor = graph.initializer.add()
            tensor.CopyFrom(scope.constants[name])
            tensor.name = short
        else:
            value = graph.input.add(name=short)
            if name in scope.types:
                value.type.CopyFrom(scope.types[name])
            value.doc_string = KNOWN if name in scope.large else hint(scope.values.get(name))
    for name, short in outputs.items():
        value = graph.output.add(name=short)
        if name in scope.types:
            value.type.CopyFrom(scope.types[name])
    _number_sizes(graph, {})
    return ModelProto(ir_version=max(ir_version, FREE_INITIALIZERS), graph=graph, opset_import=opsets)


#: What onnx's inference calls a size that it does not know, with a number that counts through the whole model.
_UNKNOWN_SIZE = "unk__"


def _number_sizes(graph: GraphProto, numbered: dict[str, str]) -> None:
    """Number the sizes that inference did not know anew, in the order in which they stand here; those below 0 are not known either."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if str(dim.dim_param).startswith(_UNKNOWN_SIZE):  # bytes where a name is not UTF-8
                dim.dim_param = numbered.setdefault(dim.dim_param, f"{_UNKNOWN_SIZE}{len(numbered)}")
            elif dim.dim_value < 0:
                dim.Clear()
    for node in graph.node:
        for inner in subgraphs(node):
            _number_sizes(inner, numbered)


def _captures(graph: GraphProto, outer: frozenset[str], found: dict[str, None]) -> None:
    known = outer | {v.name for v in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        found.update(dict.fromkeys(name for name in node.input if name and name not in known))
        for inner in subgraphs(node):
            _captures(inner, known, found)
        known |= set(node.output)
    found.update(dict.fromkeys(value.name for value in graph.output if value.name not in known))


def scope_of(model: ModelProto) -> Scope:
    """The scope of a main graph whose types have been inferred."""
    return Scope({}, {}).inside(model.graph)


def opset_versions(model: ModelProto) -> dict[str, int]:
    """The opset of each domain that a model imports."""
    return {canonical(o.domain): o.version for o in model.opset_import}


def opset_imports(versions: Mapping[str, int]) -> list[OperatorSetIdProto]:
    """The imports for these opsets."""
    return [helper.make_opsetid(domain, version) for domain, version in versions.items()]
