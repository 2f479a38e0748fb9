# SPDX-License-Identifier: Apache-2.0
"""Calls of local functions that engines take for others, or die of, are replaced by the functions' bodies.

ONNX Runtime 1.24 takes functions that differ in their overload alone for one, and its execution providers die of a call that leaves out the last
results; newer ones (seen with 1.32) and OpenVINO (2026.4) refuse that.
"""

from __future__ import annotations

from collections import defaultdict

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, canonical
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

_REASON = "engines take it for another one, or refuse that it has fewer results than the function"


def calls_inlined(contents: Contents) -> Rewritten | None:
    """A copy of the model without local functions where there are such calls; None where there are none."""
    model = contents.model
    if not model.functions or not (called := _called(model)) or expands_too_far(model):
        return None
    flat = inlined(model)
    if flat.functions:
        return None
    return Rewritten(flat, (Adaptation("calls_inlined", called, "replaced by the function's body", _REASON),))


def _called(model: ModelProto) -> str:
    """A node that calls such a function; empty where there is none."""
    results: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for function in model.functions:
        results[canonical(function.domain), function.name].append(len(function.output))
    for node in all_nodes(model):
        of = results.get((canonical(node.domain), node.op_type))
        if of is not None and of != [len(node.output)]:
            return f"{node.op_type} {node.name or next(iter(node.output), '')!r}"
    return ""
