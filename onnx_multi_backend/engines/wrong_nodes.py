# SPDX-License-Identifier: Apache-2.0
"""The nodes of a model that an engine computes wrongly, before and after it has made a session."""

from __future__ import annotations

from functools import partial

from onnx_multi_backend.adapt.defective import DefectiveNode, defective_nodes
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.operation import Values
from onnx_multi_backend.adapt.pipeline import Adapted
from onnx_multi_backend.adapt.single_node import Typed
from onnx_multi_backend.engines.session import Session
from onnx_multi_backend.engines.target import Target


def find_defective(
    target: Target,
    adapted: Adapted,
    typed: Typed,
    *,
    integers: bool,
    values: Values | None = None,
    before: Facts | None = None,
) -> list[DefectiveNode]:
    """The nodes whose forms the engine's table names; none where all of that is minor.

    Parameters
    ----------
    integers : bool
        Whether it depends on the integers that they read too.
    before : Facts, optional
        As `defective_nodes` has it.
    """
    search = partial(
        defective_nodes,
        adapted.proto,
        target,
        integers=integers,
        typed=typed,
        facts=adapted.facts,
        values=values,
        before=before,
    )
    operators, minor = target.defect_operators, target.minor_operators
    major = None if operators is None else set(operators).difference(minor)
    found = search(target.may_have_defect, operators=major)
    if all(d.defect.minor for d in found):
        return []
    return search(target.may_have_defect, operators=operators) if adapted.facts.contents.has(minor) else found


def wrong_in(session: Session, found_defects: list[DefectiveNode]) -> list[DefectiveNode]:
    """Of defective nodes those whose results are wrong where the session runs them."""
    found = [d for d in found_defects if d.defect.wrong]
    if not any(d.defect.provider for d in found):
        return found
    placed = {(node.provider, node.op_type) for node in session.placement()}
    return [
        d
        for d in found
        if not d.defect.provider or any((d.defect.provider, name) in placed for name in (d.node.op_type, d.within))
    ]
