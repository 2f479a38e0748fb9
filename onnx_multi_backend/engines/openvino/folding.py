# SPDX-License-Identifier: Apache-2.0
"""Which nodes OpenVINO computes once, while it loads a model."""

from __future__ import annotations

from onnx import AttributeProto, ModelProto, NodeProto

from onnx_multi_backend.engines.placement import NodePlacement

PROVIDER = "OpenVINO"

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)


def placement(model: ModelProto, kept: frozenset[str]) -> tuple[NodePlacement, ...]:
    """Every node that is neither folded nor removed.

    A node whose inputs are all known at load is folded: OpenVINO always runs its ConstantFolding pass. Of the others
    the compiled graph keeps some names; when it keeps none at all, nothing is left to run.

    Parameters
    ----------
    model : onnx.ModelProto
        As it was compiled.
    kept : frozenset of str
        Names of the original layers that the compiled graph runs.
    """
    if not kept:
        return ()
    known = {t.name for t in model.graph.initializer} - {v.name for v in model.graph.input}
    left = []
    for node in model.graph.node:
        if _constant(node, known):
            known.update(node.output)
        else:
            left.append(NodePlacement(node.name, node.op_type, node.domain, PROVIDER))
    return tuple(left)


def _constant(node: NodeProto, known: set[str]) -> bool:
    if node.op_type in _RANDOM or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
        return False
    return all(not name or name in known for name in node.input)
