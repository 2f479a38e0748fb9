# SPDX-License-Identifier: Apache-2.0
"""Which operators of a model run where they were asked to."""

from __future__ import annotations

from collections.abc import Callable

from onnx_multi_backend.engines.session import Built
from onnx_multi_backend.engines.target import Target

_CPU = "CPUExecutionProvider"


def runs_on_requested(target: Target, built: Built) -> Callable[[str], bool]:
    """Whether nodes of an operator run on a requested provider; those that were folded or rewritten count too."""
    if target.runs_alone:
        return lambda operator: True
    placed = built.session.placement()
    requested = {node.op_type for node in placed if node.provider in target.requested and node.provider != _CPU}
    others = {node.op_type for node in placed} - requested
    if requested:  # what took a node's place need not be of its operator
        others -= {c.node.partition(" ")[0] for c in built.adaptations if c.pass_name != "left_to_cpu"}
    return lambda operator: operator not in others
