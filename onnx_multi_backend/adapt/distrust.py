# SPDX-License-Identifier: Apache-2.0
"""Finding what an engine accepts and computes wrongly: asking it does not tell."""

from __future__ import annotations

from onnx import GraphProto, ModelProto

from onnx_multi_backend.adapt.engine import Engine
from onnx_multi_backend.adapt.single_node import (
    Scope,
    infer,
    inlined,
    opset_imports,
    opset_versions,
    single_node_model,
    subgraphs,
)
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.graph_walk import all_nodes


def distrusted(model: ModelProto, engine: Engine, operators: frozenset[str]) -> bool:
    """Whether a model has a node that the engine accepts and computes wrongly.

    Parameters
    ----------
    operators : frozenset of str
        The only ones that can be meant: nothing is inferred for a model without any of them.
    """
    if not any(node.op_type in operators for node in all_nodes(model)):
        return False
    model = inlined(model)
    typed = infer(model)
    imports = opset_imports(opset_versions(model))

    def any_in(graph: GraphProto, outer: Scope) -> bool:
        scope = outer.inside(graph)
        for node in graph.node:
            if any(any_in(inner, scope) for inner in subgraphs(node)):
                return True
            if node.op_type in operators:
                single = single_node_model(node, scope, imports, model.ir_version)
                if single is not None and engine.distrusts(Site(single)) is not None:
                    return True
        return False

    return any_in(typed.graph, Scope({}, {}))
