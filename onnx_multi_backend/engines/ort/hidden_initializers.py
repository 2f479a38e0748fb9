# SPDX-License-Identifier: Apache-2.0
"""Initializers of a branch or a body with the name of a value around it: ONNX Runtime (1.24 to 1.32) computes with that value.

onnx's checker lets them pass, and its evaluator takes the inner one. They are given names of their own.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.distinct_names import with_distinct_names
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import subgraphs
from onnx_multi_backend.models.inlining import inlined

_CHANGE = "given a name of its own"
_REASON = "ONNX Runtime would compute with the value around it that has the same name"


def initializers_renamed(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these have names of their own; None where there are none."""
    if not contents.holding:
        return None
    model = contents.model
    inside = (_inside(function.node, frozenset(function.input)) for function in model.functions)
    if not (name := next(filter(None, (_hidden(model.graph, frozenset()), *inside)), "")):
        return None
    made = inlined(with_distinct_names(contents).model)  # which gives what functions hold other names
    return Rewritten(made, (Adaptation("initializers_renamed", f"initializer {name!r}", _CHANGE, _REASON),))


def _hidden(graph: GraphProto, around: Set[str]) -> str:
    """The name of such an initializer; empty where there is none."""
    own = {tensor.name for tensor in graph.initializer}
    if hidden := own & around:
        return min(hidden)
    return _inside(graph.node, own | {value.name for value in graph.input} | around)


def _inside(nodes: Sequence[NodeProto], around: Set[str]) -> str:
    """The same in the bodies of nodes."""
    known = around | {name for node in nodes for name in node.output if name}
    return next((name for node in nodes for body in subgraphs(node) if (name := _hidden(body, known))), "")
