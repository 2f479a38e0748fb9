# SPDX-License-Identifier: Apache-2.0
"""Finding what an engine accepts and computes wrongly: asking it does not tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.adapt.engine import Defect, Engine
from onnx_multi_backend.adapt.single_node import (
    Facts,
    Scope,
    Typed,
    is_valid,
    opset_imports,
    opset_versions,
    single_node_model,
)
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.adapt.values import Value
from onnx_multi_backend.models.graph_walk import all_nodes, subgraphs
from onnx_multi_backend.models.plausible import expands_too_far


class DefectiveNode(NamedTuple):
    """A node, and why the engine's form of it is not to be trusted."""

    node: NodeProto
    defect: Defect


def defective_nodes(
    model: ModelProto,
    engine: Engine,
    may_have_defect: Callable[[NodeProto, Facts], bool],
    *,
    integers: bool = False,
    typed: Typed | None = None,
) -> list[DefectiveNode]:
    """The nodes that an engine accepts and may compute wrongly, those of subgraphs and local functions included.

    Parameters
    ----------
    may_have_defect : callable
        Tells from a node, and what a model says by itself, whether it can be meant: nothing is inferred for a model without any such node.
    integers : bool
        Whether there are nodes that `Engine.may_have_integer_defect` means.
    typed : Typed, optional
        Of the model, to be used again.
    """
    facts = Facts(model)
    if not integers and not any(may_have_defect(node, facts) for node in all_nodes(model)):
        return []
    if expands_too_far(model):
        return _in_functions(model, engine, lambda node: may_have_defect(node, facts))
    typed = typed or Typed(model)
    model = typed.flat
    imports = opset_imports(opset_versions(model))

    def within(graph: GraphProto, outer: Scope) -> Iterator[DefectiveNode]:
        scope = outer.inside(graph)
        for node in graph.node:
            for inner in subgraphs(node):
                yield from within(inner, scope)
            read = [scope.values.get(name, Value()) for name in node.input if name] if integers else []
            if may_have_defect(node, facts) or (integers and engine.may_have_integer_defect(node, read)):
                single = single_node_model(node, scope, imports, model.ir_version, untyped=True)
                defect = engine.find_defect(Site(single)) if single is not None and is_valid(single) else None
                if defect is not None:
                    yield DefectiveNode(node, defect)

    return list(within(typed.model.graph, Scope({}, {})))


def _in_functions(
    model: ModelProto, engine: Engine, may_have_defect: Callable[[NodeProto], bool]
) -> list[DefectiveNode]:
    """The same, each function looked at once and without types: its calls are too many to be put in place."""
    imports = opset_imports(opset_versions(model))
    found = []
    for node in filter(may_have_defect, all_nodes(model)):
        single = single_node_model(node, Scope({}, {}), imports, model.ir_version, untyped=True)
        defect = engine.find_defect(Site(single)) if single is not None and is_valid(single) else None
        if defect is not None:
            found.append(DefectiveNode(node, defect))
    return found
