# SPDX-License-Identifier: Apache-2.0
"""Finding what an engine accepts and computes wrongly: asking it does not tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt.engine import Defect, Engine
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.inferring.ancestors import Declared, with_ancestors, with_constants
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.intervals.ranges import ranges
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.operation import Values
from onnx_multi_backend.adapt.single_node import (
    Scope,
    Typed,
    is_valid,
    opset_imports,
    opset_versions,
    single_node_model,
)
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies, nodes_in
from onnx_multi_backend.models.plausible import expands_too_far, is_endless, nests_too_far


class DefectiveNode(NamedTuple):
    """A node, and why the engine's form of it is not to be trusted.

    Attributes
    ----------
    node : onnx.NodeProto
    defect : Defect
    within : str
        The operator of the main graph in whose subgraphs it is; empty where it is in none.
    """

    node: NodeProto
    defect: Defect
    within: str = ""


def defective_nodes(
    model: ModelProto,
    engine: Engine,
    may_have_defect: Callable[[NodeProto, Facts], bool],
    *,
    operators: Collection[str] | None = None,
    integers: bool = False,
    typed: Typed | None = None,
    facts: Facts | None = None,
    values: Values | None = None,
    before: Facts | None = None,
) -> list[DefectiveNode]:
    """The nodes that an engine accepts and may compute wrongly, those of subgraphs and local functions included.

    Parameters
    ----------
    may_have_defect : callable
        Tells from a node, and what a model says by itself, whether it can be meant: types are inferred for such nodes alone, and
        those that they are computed from.
    operators : collection of str, optional
        Those of which that may be true.
    integers : bool
        Whether there are nodes that `Engine.may_have_integer_defect` means.
    typed : Typed, optional
        Of the model, to be used again.
    facts : Facts, optional
        The same.
    values : mapping of str to Value, optional
        What `ranges` tells of the model.
    before : Facts, optional
        Of the model that this one is made of, whose nodes have been looked at, and those in their place too: only nodes are looked at
        that were not meant then.
    """
    facts = facts or Facts(model)
    contents = facts.contents

    def is_doubtful(node: NodeProto) -> bool:
        return may_have_defect(node, facts) and (before is None or not may_have_defect(node, before))

    nodes = contents.nodes if operators is None else contents.of(*operators)
    doubtful = [node for node in nodes if is_doubtful(node)]
    if not integers and not doubtful:
        return []
    if expands_too_far(model) or nests_too_far(contents):
        nodes = [node for node in contents.nodes if may_have_defect(node, facts)]
        if is_endless(contents):
            nodes = [node for node in nodes if not _nests(node)]
        return _one_by_one(model, engine, nodes)
    flat = (typed or Typed(model)).flat

    def by_itself(node: NodeProto) -> bool:
        return (operators is None or node.op_type in operators) and is_doubtful(node)

    def is_meant(node: NodeProto, read: list[Value]) -> bool:
        return by_itself(node) or (integers and engine.may_have_integer_defect(node, read))

    known = {id(node) for node in doubtful}

    def is_known(node: NodeProto, read: list[Value]) -> bool:
        """The same, of a node of the model itself."""
        return id(node) in known or (integers and engine.may_have_integer_defect(node, read))

    search = _Search(engine, is_meant, integers=integers)
    nested = any(bodies(node) for node in Contents(flat).holding)
    if integers and nested:  # what subgraphs make of integers may be known with their types only
        return search.through(_typed(typed, flat))
    if integers and values is None:
        values = ranges(flat.graph)
    meant = _meant(flat.graph, is_known if flat is model else is_meant, values if integers and values else {})
    declared = Declared(flat.graph) if meant and not nested else None
    told = [node for node in meant if declared is not None and declared.tells(node)]
    names = frozenset(name for node in told for name in node.output if name)
    others = [node for node in meant if names.isdisjoint(node.output)]
    found = []
    if told:
        known_values = values if values is not None else ranges(with_ancestors(flat, told).graph)
        found += search.through(with_constants(flat, told), known_values, wanted=names)
    if others:
        part = with_ancestors(flat, others)
        # Of a large part, the whole is inferred: others ask for its types too.
        if 2 * len(part.graph.node) > len(flat.graph.node):
            part = flat
        wanted = None if nested else frozenset(name for node in others for name in node.output if name)
        typed_part = _typed(typed, flat) if part is flat else infer(part)
        if typed is not None and part is flat and values is None:
            values = typed.values
        found += search.through(typed_part, values, wanted=wanted)
    return found


def _typed(typed: Typed | None, flat: ModelProto) -> ModelProto:
    return typed.model if typed is not None else infer(flat)


class _Search:
    """Looks through the nodes of a model whose types are known."""

    def __init__(self, engine: Engine, is_meant: Callable[[NodeProto, list[Value]], bool], *, integers: bool) -> None:
        self._engine = engine
        self._is_meant = is_meant
        self._integers = integers

    def through(
        self, model: ModelProto, values: Values | None = None, wanted: frozenset[str] | None = None
    ) -> list[DefectiveNode]:
        """The defective nodes.

        Parameters
        ----------
        model : onnx.ModelProto
        values : mapping of str to Value, optional
            Of the model, or of a larger one.
        wanted : frozenset of str, optional
            What the nodes make that are looked at, where no node holds a graph.
        """
        self._imports = opset_imports(opset_versions(model))
        self._ir_version = model.ir_version
        outer = Scope({}, {})
        if values:
            outer.nested[id(model.graph)] = model.graph, values
        return list(self._within(model.graph, outer, wanted))

    def _within(
        self, graph: GraphProto, outer: Scope, wanted: frozenset[str] | None = None, *, held: bool = False
    ) -> Iterator[DefectiveNode]:
        scope = outer.inside(graph)
        for node in graph.node:
            if wanted is not None and wanted.isdisjoint(node.output):
                continue
            for inner in bodies(node):
                yield from (d._replace(within=node.op_type) for d in self._within(inner, scope, held=True))
            read = [scope.values.get(name, Value()) for name in node.input if name] if self._integers else []
            if wanted is None and not self._is_meant(node, read):
                continue
            single = single_node_model(node, scope, self._imports, self._ir_version, untyped=True)
            if single is None or not is_valid(single):
                continue
            defect = self._engine.find_defect(Site(single, held=held))
            if defect is not None:
                yield DefectiveNode(node, defect)


def _meant(
    graph: GraphProto, is_meant: Callable[[NodeProto, list[Value]], bool], values: Mapping[str, Value]
) -> list[NodeProto]:
    """The nodes of a graph that are meant, or hold one in a subgraph."""
    found = []
    for node in graph.node:
        read = [values.get(name, Value()) for name in node.input if name] if values else []
        if is_meant(node, read) or any(is_meant(inner, []) for body in bodies(node) for inner in nodes_in(body.node)):
            found.append(node)
    return found


def _nests(node: NodeProto) -> bool:
    """Whether there are graphs in its graphs; what these hold is looked at by itself."""
    return any(bodies(inner) for body in bodies(node) for inner in body.node)


def _one_by_one(model: ModelProto, engine: Engine, nodes: list[NodeProto]) -> list[DefectiveNode]:
    """The same, each node looked at once and without types: there are too many once calls are put in place, or graphs in graphs."""
    imports = opset_imports(opset_versions(model))
    found = []
    for node in nodes:
        single = single_node_model(node, Scope({}, {}), imports, model.ir_version, untyped=True)
        defect = engine.find_defect(Site(single)) if single is not None and is_valid(single) else None
        if defect is not None:
            found.append(DefectiveNode(node, defect))
    return found
