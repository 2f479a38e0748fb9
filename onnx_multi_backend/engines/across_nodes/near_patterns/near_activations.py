# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of activations that are written out with other numbers than it expects.

Of a GELU by the hyperbolic tangent with rounded constants it computes the exact ones: 0.798 for the root of 2 / pi gives other digits. It refuses a swish whose factor is
more than one constant number, once it has recognized it. The larger of a value and itself, which is that value, is not recognized.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, of_floats, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

#: The constants of GELU, how far from them OpenVINO takes others for them, and how far they change digits of float32 alone.
_GELU = ((math.sqrt(2 / math.pi), 0.011, 1e-6), (0.044715, 0.0011, 1e-7))
#: What reads the product of a swish.
_OF_SWISH = frozenset({"Neg", "Sigmoid"})
_REASON = "OpenVINO would make one activation of it, with other numbers"


def activations_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such a product is kept apart from what reads it; None where there are none."""
    if (
        not contents.has({"Mul"})
        or not contents.has({"Exp", "Sigmoid", "Tanh"})
        or (flat := flat_for(contents)) is None
    ):
        return None
    walked = walked_of(contents)
    graphs = zip(walked.views, walked.readers, strict=True)
    made = [{place: nodes[place].output[0] for place in _found(nodes, readers, walked)} for nodes, readers in graphs]
    return outputs_apart(flat, of_floats(contents, flat, made), f"{CAST}activation", "activations_apart", _REASON)


def _found(
    nodes: Sequence[NodeView],
    readers: Mapping[str, Sequence[NodeProto]],
    walked: Walked,
) -> Iterator[int]:
    """The places of such products."""
    for place, node in enumerate(nodes):
        if node.operator != "Mul":
            continue
        reading = {reader.op_type for reader in readers.get(node.output[0], ())}
        held = [walked.array(name) for name in node.input]
        constants = [value for value in held if value is not None and value.size == 1]
        root, cubic = (any(_is_rounded(float(value.item()), *known) for value in constants) for known in _GELU)
        # A number without axes is what a swish may have, and but for a quotient any constant one.
        factor = any(not value.ndim or "Neg" not in reading for value in constants)
        swish = not factor and not _OF_SWISH.isdisjoint(reading) and _is_used_again(node, readers)
        swish = swish and not any(walked.rank(name) == 0 for name in node.input)
        if swish or (root and "Tanh" in reading) or (cubic and "Add" in reading):
            yield place


def _is_rounded(number: float, exact: float, taken: float, digits: float) -> bool:
    return digits < abs(number - exact) < taken


def _is_used_again(node: NodeView, readers: Mapping[str, Sequence[NodeProto]]) -> bool:
    """Whether something of a product is multiplied or divided again, as the value of a swish is."""
    others = (reader for name in node.input for reader in readers.get(name, ()) if reader.output[0] != node.output[0])
    return any(reader.op_type in ("Div", "Mul") for reader in others)
