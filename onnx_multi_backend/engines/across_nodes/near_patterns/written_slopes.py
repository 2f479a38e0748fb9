# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a leaky activation that is written out with a vector of slopes for the last axis.

Of ``Relu(x) - Relu(-x) * slopes``, ``Relu(x) + -Relu(-x) * slopes`` and ``Relu(x) + (x - |x|) * slopes / 2`` it makes a PRelu, whose vector belongs to
the channels, which are the second axis. The larger of the product and itself, which is the product, is not recognized.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

#: What the slopes are multiplied with.
_NEGATIVE = frozenset({"Neg", "Relu", "Sub"})
_REASON = "OpenVINO would take the slopes of the last axis for those of channels"


def slopes_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which products with such slopes are kept apart from what reads them; None where there are none."""
    if not contents.has({"Relu"}) or not contents.has({"Mul"}) or not contents.has({"Abs", "Neg"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked, sizes = walked_of(contents), sizes_of(contents)

    def is_vector(name: str) -> bool:
        tensor = walked.fixed.get(name)
        return name in walked.fixed and (tensor is None or (len(tensor.dims) == 1 and tensor.dims[0] > 1))

    def is_met(node: NodeView) -> bool:
        if node.operator != "Mul" or not any(map(is_vector, node.input)):
            return False
        made = [maker.op_type for name in node.input if (maker := walked.makers.get(name)) is not None]
        return not _NEGATIVE.isdisjoint(made) and len(sizes.get(node.output[0]) or (None,) * 3) > 2

    def found(nodes: Sequence[NodeView]) -> dict[int, tuple[int, ...]]:
        return {place: (0,) for place, node in enumerate(nodes) if is_met(node)}

    return outputs_apart(flat, [found(nodes) for nodes in walked.views], f"{CAST}slopes", "slopes_apart", _REASON)
