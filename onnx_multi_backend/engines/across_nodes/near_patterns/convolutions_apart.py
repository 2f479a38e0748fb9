# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) joins convolutions with.

A Pad before a ConvTranspose becomes the padding of that, though one element more before it is a stride behind it. Convolutions of the parts of a
Split become one of groups where a Concat puts their results together, along whatever axis and in whatever order. The larger of a value and itself
between them, which is that value, keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_CHANNELS = 1
_REASON = "OpenVINO would join it with the convolution, and compute another one"


def convolutions_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from convolutions; None where there are none."""
    padded = contents.has({"AveragePool", "Conv", "ConvTranspose"}) and contents.has({"Pad"})
    joined = contents.has({"Conv"}) and contents.has({"Concat"}) and contents.has({"Split"})
    if not (padded or joined) or (flat := flat_for(contents)) is None:
        return None
    found = [dict(_found(nodes)) for nodes in walked_of(contents).views]
    return inputs_apart(flat, found, f"{CAST}convolved", "convolutions_apart", "kept apart from a convolution", _REASON)


def _found(nodes: Sequence[NodeView]) -> Iterator[tuple[int, int]]:
    """The places of transposed convolutions behind a Pad, and of nodes that put convolutions of parts together; with that of an input to be kept apart."""
    makers = {name: node for node in nodes for name in node.output if name}

    def is_made_by(name: str, operator: str) -> bool:
        return name in makers and makers[name].operator == operator

    for place, node in enumerate(nodes):
        if _pads_otherwise(node) and is_made_by(node.input[0], "Pad"):
            yield place, 0
        elif node.operator == "Concat":
            convolved = [name for name in node.input if is_made_by(name, "Conv")]
            parts = [name for name in (makers[name].input[0] for name in convolved) if is_made_by(name, "Split")]
            if parts and (_axis(node) != _CHANNELS or len(parts) < len(node.input) or parts != makers[parts[0]].output):
                yield place, node.input.index(convolved[0])


def _pads_otherwise(node: NodeView) -> bool:
    """Whether the padding of a Pad means something else in a node."""
    if node.operator not in ("AveragePool", "Conv"):
        return node.operator == "ConvTranspose"
    return any(a.name == "auto_pad" and a.s.startswith(b"SAME") for a in node.proto.attribute)


def _axis(node: NodeView) -> int:
    return next((a.i for a in node.proto.attribute if a.name == "axis"), _CHANNELS)
