# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime is known to be wrong, with and without optimizations: there it has no vote, and two of it do not agree."""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.string_rows import may_collect_strings
from onnx_multi_backend.models.graph_walk import all_nodes


def errs(model: ModelProto) -> str:
    """What ONNX Runtime gets wrong of a model; empty where nothing is known."""
    if any(node.op_type == "Loop" and may_collect_strings(node) for node in all_nodes(model)):
        return "Loop: strings are moved into a scan output, and a value that it passes on is empty afterwards"
    return ""
