# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime is known to be wrong, with and without optimizations: there it has no vote, and two of it do not agree."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt.operators.pools import dilates_into_auto_pad
from onnx_multi_backend.adapt.operators.string_rows import may_collect_strings
from onnx_multi_backend.models.graph_walk import all_nodes


def errs(model: ModelProto) -> str:
    """What ONNX Runtime gets wrong of a model; empty where nothing is known."""
    if any(node.op_type == "Loop" and may_collect_strings(node) for node in all_nodes(model)):
        return "Loop: strings are moved into a scan output, and a value that it passes on is empty afterwards"
    return next((f"{n.op_type}: {words}" for n in all_nodes(model) if (words := _of_node(n))), "")


def _of_node(node: NodeProto) -> str:
    if node.op_type in ("AveragePool", "LpPool", "MaxPool") and dilates_into_auto_pad(node):
        return "the padding that auto_pad stands for is computed as if there were no dilations"
    if node.op_type == "Resize":
        return _of_resize({a.name: onnx.helper.get_attribute_value(a) for a in node.attribute})
    return ""


def _of_resize(given: dict[str, Any]) -> str:
    if given.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        return "an axis that is cropped, and has its size again, is left as it is"
    if given.get("keep_aspect_ratio_policy", b"stretch") != b"stretch" and min(given.get("axes", ()), default=0) < 0:
        return "axes counted from the end are left as they are where an aspect ratio is kept"
    return ""
