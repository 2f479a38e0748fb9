# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a leaky activation that is written out with a vector of slopes for the last axis.

Of ``Relu(x) - Relu(-x) * slopes``, ``Relu(x) + -Relu(-x) * slopes`` and ``Relu(x) + (x - |x|) * slopes / 2`` it makes a PRelu, whose vector belongs to
the channels, which are the second axis. The larger of the product and itself, which is the product, is not recognized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import LEFT_OUT, flat_for, is_made_by, of_floats, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_SUMS = frozenset({"Add", "Sub"})
_PASSING = (*LEFT_OUT, "Dropout")
_REASON = "OpenVINO would take the slopes of the last axis for those of channels"


def slopes_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which products with such slopes are kept apart from what reads them; None where there are none."""
    if not contents.has({"Relu"}) or not contents.has({"Mul"}) or not contents.has(_SUMS):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked, sizes = walked_of(contents), sizes_of(contents)

    def is_vector(name: str) -> bool:
        tensor = walked.fixed.get(name)
        return name in walked.fixed and (tensor is None or (len(tensor.dims) == 1 and tensor.dims[0] > 1))

    def is_activated(name: str) -> bool:
        return is_made_by(name, "Relu", walked.makers, _PASSING)

    def found(nodes: Sequence[NodeView], readers: Mapping[str, Sequence[NodeProto]]) -> dict[int, str]:
        def meets_activated(name: str) -> bool:
            """Whether something is added to a value, or to its product with a number, that a Relu makes."""
            waiting, seen = [name], set[str]()
            while waiting:
                value = waiting.pop()
                for node in readers.get(value, ()):
                    if node.op_type in _SUMS and any(map(is_activated, node.input)):
                        return True
                    if node.op_type in (*_PASSING, "Mul") and node.output[0] not in seen:
                        seen.add(node.output[0])
                        waiting.append(node.output[0])
            return False

        def is_met(node: NodeView) -> bool:
            if node.operator != "Mul" or not any(map(is_vector, node.input)):
                return False
            return len(sizes.get(node.output[0]) or (None,) * 3) > 2 and meets_activated(node.output[0])

        return {place: node.output[0] for place, node in enumerate(nodes) if is_met(node)}

    made = [found(nodes, readers) for nodes, readers in zip(walked.views, walked.readers, strict=True)]
    return outputs_apart(flat, of_floats(contents, flat, made), f"{CAST}slopes", "slopes_apart", _REASON)
