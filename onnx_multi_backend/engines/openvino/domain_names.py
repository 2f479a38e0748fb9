# SPDX-License-Identifier: Apache-2.0
"""Nodes of ONNX's domain by its long name, ``ai.onnx``, of which OpenVINO's frontend (2025.4, 2026.4) knows no operators."""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, operator_name

_REASON = "OpenVINO's frontend knows ONNX's domain by its short name alone"


def domains_shortened(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these nodes have the empty domain; None where there are none."""
    named = next((node for node in contents.holding if node.domain and not canonical(node.domain)), None)
    if named is None:
        return None
    copy = ModelProto()
    copy.CopyFrom(contents.model)
    for node in all_nodes(copy):
        node.domain = canonical(node.domain)
    change = Adaptation("domains_shortened", operator_name(named), f"of the domain '', not {named.domain!r}", _REASON)
    return Rewritten(copy, (change,))
