# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a Gather of quantized values that have several scales.

Its low-precision transformations move the scales behind the Gather. Of a number as the index the result keeps the axis, and the scales are those of
another axis; of several indices along another axis than the scales they may be, too. So they are of constants in one block. No scale is moved behind
the larger of a value and itself, which is that value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_REASON = "OpenVINO would move the scales of quantized values behind it, to another axis"


def choices_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such a Gather is kept apart from scales before it; None where there is none."""
    if not contents.has({"DequantizeLinear"}) or not contents.has({"Gather"}):
        return None
    walked = walked_of(contents)
    scales = (walked.fixed.get(node.input[1]) for node in contents.of("DequantizeLinear") if len(node.input) > 1)
    if not any(map(_are_several, scales)) or (flat := flat_for(contents)) is None:
        return None
    scaled = Scaled(walked)

    def is_meant(node: NodeProto) -> bool:
        return (node.input[0] not in walked.fixed and scaled(node.input[0])) or _takes_of_blocks(node, walked)

    return _gathers_apart(flat, walked, is_meant, "chosen")


def tables_apart(contents: Contents) -> Rewritten | None:
    """The same of a Gather of constants with scales along another axis, which the execution provider's OpenVINO (2025.4) gathers too, or dies of."""
    if not contents.has({"DequantizeLinear"}) or not contents.has({"Gather"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    return _gathers_apart(flat, walked, lambda node: _takes_of_table(node, walked), "table")


def _gathers_apart(
    flat: ModelProto, walked: Walked, is_meant: Callable[[NodeProto], bool], suffix: str
) -> Rewritten | None:
    """A copy of a model in which these Gathers are kept apart from scales before them."""
    found = [
        {
            place: 0
            for place, node in enumerate(graph.node)
            if node.op_type == "Gather" and not canonical(node.domain) and node.input and is_meant(node)
        }
        for graph in walked.graphs
    ]
    return inputs_apart(flat, found, f"{CAST}{suffix}", "choices_apart", "kept apart from scales before it", _REASON)


def _dequantizing(node: NodeProto, walked: Walked) -> NodeProto | None:
    """The DequantizeLinear that makes what a Gather takes of."""
    maker = walked.makers.get(node.input[0])
    is_such = maker is not None and maker.op_type == "DequantizeLinear" and not canonical(maker.domain)
    return maker if is_such else None


def _takes_of_table(node: NodeProto, walked: Walked) -> bool:
    """Whether a Gather takes of constants with scales along another axis, not in blocks."""
    if (maker := _dequantizing(node, walked)) is None or maker.input[0] not in walked.fixed:
        return False
    given = {a.name: a.i for a in maker.attribute}
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    several = _are_several(walked.fixed.get(maker.input[1]))
    return several and axis != given.get("axis", 1) and not given.get("block_size")


def _takes_of_blocks(node: NodeProto, walked: Walked) -> bool:
    """Whether a Gather takes of constants that are dequantized in blocks as long as the axis."""
    if (maker := _dequantizing(node, walked)) is None:
        return False
    given = {a.name: a.i for a in maker.attribute}
    scale = walked.fixed.get(maker.input[1])
    return bool(given.get("block_size")) and scale is not None and scale.dims[given.get("axis", 1)] == 1


def _are_several(tensor: TensorProto | None) -> bool:
    return tensor is None or math.prod(tensor.dims) > 1
