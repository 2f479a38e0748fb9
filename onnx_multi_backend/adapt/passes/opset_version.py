# SPDX-License-Identifier: Apache-2.0
"""Pass: lower an opset import where none of the operators used changed in between."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import NodeProto

from onnx_multi_backend.adapt.same_operator import unchanged
from onnx_multi_backend.adapt.work import Adaptation, Work
from onnx_multi_backend.models.graph_walk import canonical, nodes_in


def opset_version(work: Work) -> None:
    """Lower each opset import that is above the engine's, in the main graph and in every local function.

    All operators of the domain that are used have to mean the same in both opsets: see `same_operator`.
    """
    model = work.model
    _lower(work, "", model.opset_import, model.graph.node)
    for i, function in enumerate(model.functions):
        _lower(work, function.name, function.opset_import, function.node, function_index=i)


def _lower(
    work: Work,
    where: str,
    imports: Iterable[onnx.OperatorSetIdProto],
    nodes: Iterable[NodeProto],
    function_index: int | None = None,
) -> None:
    for i, opset in enumerate(imports):
        if opset.version <= work.limits.sure_opsets.get(canonical(opset.domain), 1):
            continue
        limit = work.limits.max_opset(canonical(opset.domain))
        if limit is None or opset.version <= limit:
            continue
        domain = canonical(opset.domain)
        used = {node.op_type for node in nodes_in(nodes) if canonical(node.domain) == domain}
        if not all(unchanged(op_type, domain, opset.version, limit) for op_type in used):
            continue
        given = opset.version
        model = work.edit()
        target = model if function_index is None else model.functions[function_index]
        target.opset_import[i].version = limit
        work.changes.append(
            Adaptation(
                "opset_version",
                where,
                f"opset {given} of {canonical(opset.domain) or 'ai.onnx'} to {limit}",
                f"the engine knows opsets up to {limit}, and no operator used here changed in between",
            )
        )
